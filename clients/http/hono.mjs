// A Hono application behind the middleware. REDIS, PORT, FAIL, UTILIZATION and TIMEOUT come from the environment.

import { setTimeout as pause } from 'node:timers/promises'
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { stream } from 'hono/streaming'
import { Redis } from 'ioredis'
import { clientAddress, Concurrent, RateLimiter, SlidingLog, TokenBucket, UNLIMITED } from 'redis-ratelimit'
import { ratelimit } from 'redis-ratelimit/hono'

const { REDIS = 'redis://127.0.0.1', PORT = 3000, FAIL = 'open', UTILIZATION = 0, TIMEOUT = 100, PROXY } = process.env
// The limiter takes the address, and has connections of its own.
const limiter = new RateLimiter(new Redis(REDIS, { lazyConnect: true }), { fail: FAIL, timeoutMs: Number(TIMEOUT) })

// The prompt and the answer of a chat, together.
const MAX_TOKENS = 400
// Any other plan, such as that of the staff, has no limit.
const PLANS = { free: new SlidingLog(3, '10s'), pro: new SlidingLog(6, '10s') }
const caller = (c) => c.req.header('x-api-key') ?? c.env.incoming.socket.remoteAddress
// Of the client. A proxy in front adds the last address of the header.
const address = (c) => clientAddress(PROXY ? c.req.header('x-forwarded-for').split(',').at(-1) : c)
const on = (path, who = caller) => (c) => (c.req.path === path ? who(c) : UNLIMITED)

const limits = ratelimit({
  limiter,
  rules: [
    { name: 'default', key: caller, limit: new SlidingLog(100, '10s') },
    { name: 'short', key: on('/short'), limit: new SlidingLog(2, '1500ms') },
    { name: 'streams', key: on('/stream'), limit: new Concurrent(5, '1m') },
    { name: 'plan', key: on('/plan'), limit: (c) => PLANS[c.req.header('x-plan') ?? 'free'] ?? UNLIMITED },
    { name: 'items', key: on('/items'), limit: new SlidingLog(10, '10s'), cost: (c) => Number(c.req.query('n')) },
    { name: 'tokens', key: on('/chat'), limit: new TokenBucket(1000, 1000, '1d'), estimate: MAX_TOKENS },
    { name: 'login', key: on('/login'), limit: new SlidingLog(3, '10s'), counts: (status) => status >= 400 },
    { name: 'address', key: on('/address', address), limit: new SlidingLog(2, '1m') },
  ],
  // Reports go first, pages next. What is paid for is never shed.
  shed: {
    key: 'fleet',
    utilization: () => Number(UTILIZATION),
    tier: (c) => (c.req.path === '/pay' ? undefined : c.req.path === '/report' ? 1 : 2),
    tiers: 2,
    delay: '200ms',
    ramp: '2000ms',
  },
})
await limiter.ready()

const app = new Hono()
app.use(limits)

app.get('/stream', (c) =>
  stream(c, async (out) => {
    while (!out.aborted) {
      await out.write('tick\n')
      await pause(100)
    }
  }),
)

// An answer of this many tokens. The model may fail after one of them.
app.get('/chat', (c) => {
  const { tokens, fail } = c.req.query()
  const spent = c.get('spent')
  spent.tokens = 0
  return stream(c, async (out) => {
    for (let i = 0; i < Math.min(tokens, MAX_TOKENS) && !out.aborted; i++) {
      if (i === Number(fail)) throw new Error('the model is gone')
      spent.tokens++
      await out.write('word ')
      await pause(10)
    }
  })
})

app.get('/login', (c) => c.text('ok', c.req.query('ok') === '1' ? 200 : 401))
app.get('/boom', () => {
  throw new Error('the handler is broken')
})
app.all('*', (c) => c.text('ok'))
serve({ fetch: app.fetch, port: Number(PORT), hostname: '127.0.0.1' })
