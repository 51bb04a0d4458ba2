// An Express application behind the middleware. REDIS, PORT, FAIL and UTILIZATION come from the environment.

import { setTimeout as pause } from 'node:timers/promises'
import express from 'express'
import { Redis } from 'ioredis'
import { ratelimit } from './ratelimit-express.mjs'

const { REDIS = 'redis://127.0.0.1', PORT = 3000, FAIL = 'open', UTILIZATION = 0, TIMEOUT = 100 } = process.env
// Without a queue: a call that could not be made is not made later.
const redis = new Redis(REDIS, { enableOfflineQueue: false, maxRetriesPerRequest: 0 })
redis.on('error', () => {})

const caller = (req) => req.get('x-api-key') ?? req.ip
const on = (path) => (req) => (req.path === path ? caller(req) : undefined)
// The prompt and the answer of a chat, together.
const MAX_TOKENS = 400
const app = express()

app.use(
  ratelimit({
    redis,
    policies: [
      { name: 'default', key: caller, limiter: ['SLIDINGLOG', 100, '10s'], window: 10 },
      { name: 'short', key: on('/short'), limiter: ['SLIDINGLOG', 2, 1500], window: 2 },
      { name: 'streams', key: on('/stream'), limiter: ['CONCURRENT', 5, '1m'] },
      {
        name: 'tokens',
        key: on('/chat'),
        limiter: ['TOKENBUCKET', 1000, 1000, '1d'],
        window: 86_400,
        estimate: () => MAX_TOKENS,
      },
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

// An answer of this many tokens. The model may fail after one of them.
app.get('/chat', async (req, res) => {
  const { tokens, fail } = req.query
  req.spent.tokens = 0
  for (let i = 0; i < Math.min(tokens, MAX_TOKENS) && !res.destroyed; i++) {
    if (i === Number(fail)) throw new Error('the model is gone')
    req.spent.tokens++
    res.write('word ')
    await pause(10)
  }
  res.end()
})
app.use((req, res) => res.send('ok'))
app.listen(Number(PORT), '127.0.0.1')
