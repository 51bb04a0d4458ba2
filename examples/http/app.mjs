// Limits in front of an Express application: `REDIS=redis://127.0.0.1 PORT=3000 node app.mjs`.

import { setTimeout as pause } from 'node:timers/promises'
import express from 'express'
import { Redis } from 'ioredis'
import { Concurrent, RateLimiter, TokenBucket, UNLIMITED, clientAddress } from 'redis-ratelimit'
import { ratelimit } from 'redis-ratelimit/express'

const OWNERS = new Map([['a-secret-key', 'acme'], ['another-key', 'staff']])
const PLANS = new Map([['acme', '600/m'], ['staff', UNLIMITED]])
// The owner of the key: the server stores this name, so it must be no secret.
const caller = (req) => OWNERS.get(req.get('x-api-key')) ?? clientAddress(req)
const chatting = (req) => (req.path === '/chat' ? caller(req) : UNLIMITED)
const planOf = (req) => PLANS.get(caller(req)) ?? '60/m'

const limiter = new RateLimiter(new Redis(process.env.REDIS, { lazyConnect: true }))
const limits = ratelimit({
  limiter,
  rules: [
    { name: 'requests', key: caller, limit: planOf },
    { name: 'streams', key: chatting, limit: new Concurrent(2, '30s') },
    { name: 'tokens', key: chatting, limit: new TokenBucket(9000, 9000, '1m'), estimate: 400 },
  ],
})
await limiter.ready()

const app = express()
app.use(limits)
app.get('/chat', async (req, res) => {
  req.spent.tokens = 0
  for (const word of 'what the model says'.split(' ')) {
    if (res.destroyed) return
    req.spent.tokens += 1
    res.write(`${word} `)
    await pause(100)
  }
  res.end()
})
app.listen(Number(process.env.PORT), '127.0.0.1')
