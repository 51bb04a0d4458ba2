// An Express application behind the middleware. REDIS, PORT, FAIL, UTILIZATION and TIMEOUT come from the environment.

import { setTimeout as pause } from 'node:timers/promises'
import express from 'express'
import { Redis } from 'ioredis'
import { clientAddress, Concurrent, RateLimiter, SlidingLog, TokenBucket, UNLIMITED } from 'redis-ratelimit'
import { ratelimit } from 'redis-ratelimit/express'

const { REDIS = 'redis://127.0.0.1', PORT = 3000, FAIL = 'open', UTILIZATION = 0, TIMEOUT = 100, PROXY } = process.env
// The limiter takes the address, and has connections of its own.
const limiter = new RateLimiter(new Redis(REDIS, { lazyConnect: true }), { fail: FAIL, timeoutMs: Number(TIMEOUT) })

// The prompt and the answer of a chat, together.
const MAX_TOKENS = 400
// Any other plan, such as that of the staff, has no limit.
const PLANS = { free: new SlidingLog(3, '10s'), pro: new SlidingLog(6, '10s') }
const caller = (req) => req.get('x-api-key') ?? req.ip
const on = (path, who = caller) => (req) => (req.path === path ? who(req) : UNLIMITED)

const limits = ratelimit({
  limiter,
  rules: [
    { name: 'default', key: caller, limit: new SlidingLog(100, '10s') },
    { name: 'short', key: on('/short'), limit: new SlidingLog(2, '1500ms') },
    { name: 'streams', key: on('/stream'), limit: new Concurrent(5, '1m') },
    { name: 'plan', key: on('/plan'), limit: (req) => PLANS[req.get('x-plan') ?? 'free'] ?? UNLIMITED },
    { name: 'items', key: on('/items'), limit: new SlidingLog(10, '10s'), cost: (req) => Number(req.query.n) },
    { name: 'tokens', key: on('/chat'), limit: new TokenBucket(1000, 1000, '1d'), estimate: MAX_TOKENS },
    { name: 'login', key: on('/login'), limit: new SlidingLog(3, '10s'), counts: (status) => status >= 400 },
    { name: 'address', key: on('/address', clientAddress), limit: new SlidingLog(2, '1m') },
  ],
  // Reports go first, pages next. What is paid for is never shed.
  shed: {
    key: 'fleet',
    utilization: () => Number(UTILIZATION),
    tier: (req) => (req.path === '/pay' ? undefined : req.path === '/report' ? 1 : 2),
    tiers: 2,
    delay: '200ms',
    ramp: '2000ms',
  },
})
await limiter.ready()

const app = express()
app.set('trust proxy', PROXY ? 1 : false)
app.use(limits)

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

app.get('/login', (req, res) => res.status(req.query.ok === '1' ? 200 : 401).send('ok'))
app.get('/boom', () => {
  throw new Error('the handler is broken')
})
app.use((req, res) => res.send('ok'))
app.listen(Number(PORT), '127.0.0.1')
