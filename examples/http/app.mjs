// An Express application behind the middleware. REDIS, PORT, FAIL and UTILIZATION come from the environment.

import express from 'express'
import { Redis } from 'ioredis'
import { ratelimit } from './ratelimit-express.mjs'

const { REDIS = 'redis://127.0.0.1', PORT = 3000, FAIL = 'open', UTILIZATION = 0, TIMEOUT = 100 } = process.env
// Without a queue: a call that could not be made is not made later.
const redis = new Redis(REDIS, { enableOfflineQueue: false, maxRetriesPerRequest: 0 })
redis.on('error', () => {})

const caller = (req) => req.get('x-api-key') ?? req.ip
const on = (path) => (req) => (req.path === path ? caller(req) : undefined)
const app = express()

app.use(
  ratelimit({
    redis,
    policies: [
      { name: 'default', key: caller, limiter: ['SLIDINGLOG', 100, '10s'], window: 10 },
      { name: 'short', key: on('/short'), limiter: ['SLIDINGLOG', 2, 1500], window: 2 },
      { name: 'streams', key: on('/stream'), limiter: ['CONCURRENT', 5, '1m'] },
    ],
    // Reports go first, pages next; what is paid for is never shed.
    shed: {
      key: 'fleet',
      utilization: () => Number(UTILIZATION),
      tier: (req) => (req.path === '/pay' ? undefined : req.path === '/report' ? 1 : 2),
      tiers: 2,
      options: ['DELAY', 200, 'RAMP', 2000],
    },
    timeout: Number(TIMEOUT),
    fail: FAIL,
  }),
)

app.get('/stream', (req, res) => {
  const ticks = setInterval(() => res.write('tick\n'), 100)
  res.once('close', () => clearInterval(ticks))
})
app.use((req, res) => res.send('ok'))
app.listen(Number(PORT), '127.0.0.1')
