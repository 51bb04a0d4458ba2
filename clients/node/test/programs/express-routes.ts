/** Limits by route in Express, with a 429 of the application's own. */

import express, { type Express } from 'express'
import { type RateLimiter } from 'redis-ratelimit'
import { ratelimit, type RateLimitOptions } from 'redis-ratelimit/express'

export function application(limiter: RateLimiter): Express {
  const onRefused: RateLimitOptions['onRefused'] = (_req, res, { violated, retryAfter }) =>
    void res.json({ error: `too many requests: ${violated.join(', ')}`, seconds: retryAfter === null ? null : Math.ceil(retryAfter / 1000) })
  const limit = (name: string, rate: string) =>
    ratelimit({ limiter, rules: [{ name, key: (req) => req.get('x-user') ?? req.ip, limit: rate }], onRefused })
  const app = express()
  app.use(ratelimit({ limiter, rules: [{ name: 'all', key: () => 'all', limit: '1000/s' }], skip: (req) => req.path === '/health' }))
  app.get('/health', (_req, res) => void res.send('ok'))
  app.get('/search', limit('search', '30/m'), (req, res) => void res.json({ left: req.decisions['search']?.remaining }))
  const account = express.Router().use(limit('account', '5/m'))
  account.post('/password', limit('password', '2/h'), (_req, res) => void res.json({ changed: true }))
  app.use('/account', account)
  return app
}
