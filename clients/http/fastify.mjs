// A Fastify application behind the plugin. REDIS, PORT, FAIL, UTILIZATION and TIMEOUT come from the environment.

import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import fastify from 'fastify'
import { createClient } from 'redis'
import { clientAddress, Concurrent, RateLimiter, SlidingLog, TokenBucket, UNLIMITED } from 'redis-ratelimit'
import { ratelimit } from 'redis-ratelimit/fastify'

const { REDIS = 'redis://127.0.0.1', PORT = 3000, FAIL = 'open', UTILIZATION = 0, TIMEOUT = 100, PROXY } = process.env
// The limiter takes the address, and has connections of its own.
const limiter = new RateLimiter(createClient({ url: REDIS }), { fail: FAIL, timeoutMs: Number(TIMEOUT) })

// The prompt and the answer of a chat, together.
const MAX_TOKENS = 400
// Any other plan, such as that of the staff, has no limit.
const PLANS = { free: new SlidingLog(3, '10s'), pro: new SlidingLog(6, '10s') }
const path = (request) => new URL(request.url, 'http://x').pathname
const caller = (request) => request.headers['x-api-key'] ?? request.ip
const on = (wanted, who = caller) => (request) => (path(request) === wanted ? who(request) : UNLIMITED)

const app = fastify({ trustProxy: PROXY ? '127.0.0.1' : false })
await app.register(ratelimit, {
  limiter,
  rules: [
    { name: 'default', key: caller, limit: new SlidingLog(100, '10s') },
    { name: 'short', key: on('/short'), limit: new SlidingLog(2, '1500ms') },
    { name: 'streams', key: on('/stream'), limit: new Concurrent(5, '1m') },
    { name: 'plan', key: on('/plan'), limit: (request) => PLANS[request.headers['x-plan'] ?? 'free'] ?? UNLIMITED },
    { name: 'items', key: on('/items'), limit: new SlidingLog(10, '10s'), cost: (request) => Number(request.query.n) },
    { name: 'tokens', key: on('/chat'), limit: new TokenBucket(1000, 1000, '1d'), estimate: MAX_TOKENS },
    { name: 'login', key: on('/login'), limit: new SlidingLog(3, '10s'), counts: (status) => status >= 400 },
    { name: 'address', key: on('/address', clientAddress), limit: new SlidingLog(2, '1m') },
  ],
  // Reports go first, pages next. What is paid for is never shed.
  shed: {
    key: 'fleet',
    utilization: () => Number(UTILIZATION),
    tier: (request) => (path(request) === '/pay' ? undefined : path(request) === '/report' ? 1 : 2),
    tiers: 2,
    delay: '200ms',
    ramp: '2000ms',
  },
})

app.get('/stream', () => {
  const ticks = async function* () {
    for (;;) {
      yield 'tick\n'
      await pause(100)
    }
  }
  return Readable.from(ticks())
})

// An answer of this many tokens. The model may fail after one of them.
app.get('/chat', (request) => {
  const { tokens, fail } = request.query
  request.spent.tokens = 0
  const words = async function* () {
    for (let i = 0; i < Math.min(tokens, MAX_TOKENS); i++) {
      if (i === Number(fail)) throw new Error('the model is gone')
      request.spent.tokens++
      yield 'word '
      await pause(10)
    }
  }
  return Readable.from(words())
})

app.get('/login', (request, reply) => reply.code(request.query.ok === '1' ? 200 : 401).send('ok'))
app.get('/boom', () => {
  throw new Error('the handler is broken')
})
app.route({ method: ['GET', 'OPTIONS'], url: '/*', handler: () => 'ok' })
await app.listen({ port: Number(PORT), host: '127.0.0.1' })
