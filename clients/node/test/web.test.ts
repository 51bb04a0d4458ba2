/** The middleware of each framework: hasty clients, wrong rules and calls, headers that add up, limits of a route, and other origins. */

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { getRequestListener } from '@hono/node-server'
import express, { type ErrorRequestHandler, type Request } from 'express'
import fastify, { type FastifyRequest } from 'fastify'
import { Hono, type Context } from 'hono'
import { cors } from 'hono/cors'
import { Redis } from 'ioredis'
import { clientAddress, Concurrent, LeakyBucket, RateLimiter, SlidingLog, TokenBucket, UNLIMITED, type RateLimiterOptions } from 'redis-ratelimit'
import { ratelimit as expressLimit, upgrade, type Rule } from 'redis-ratelimit/express'
import { ratelimit as fastifyLimit } from 'redis-ratelimit/fastify'
import { ratelimit as honoLimit } from 'redis-ratelimit/hono'
import { onServer } from './limiters.js'
import { application } from './programs/express-routes.js'
import { listening, until, type App, type Server } from './servers.js'

/** A request, as the rules of the first tests see it. */
interface View {
  path: string
  header(name: string): unknown
  socket: Socket
}

/** The rules of a framework, made of those of the tests. */
function rulesFor<R>(rules: Rule<View>[], view: (request: R) => View): Rule<R>[] {
  return rules.map(({ key, ...rule }) => ({ ...rule, key: (request: R) => key(view(request)) }) as Rule<R>)
}

/** Applications whose every route answers `ok`. `told` gets the errors. */
const APPLICATIONS: Record<string, (limiter: RateLimiter, rules: Rule<View>[], told: unknown[]) => Promise<App>> = {
  async Express(limiter, rules, told) {
    const app = express().set('env', 'test')
    app.use(expressLimit({ limiter, rules: rulesFor(rules, (req: Request) => ({ path: req.path, header: (name) => req.get(name), socket: req.socket })) }))
    await limiter.ready()
    app.use((_req, res) => void res.end('ok'))
    app.use(((error, _req, res, _next) => (told.push(error), res.status(500).end())) as ErrorRequestHandler)
    return listening(createServer(app))
  },
  async Fastify(limiter, rules, told) {
    const app = fastify({ forceCloseConnections: true })
    app.setErrorHandler((error, _request, reply) => (told.push(error), reply.code(500).send('failed')))
    const view = (request: FastifyRequest) => ({ path: request.url, header: (name: string) => request.headers[name], socket: request.socket })
    await app.register(fastifyLimit, { limiter, rules: rulesFor(rules, view) })
    app.get('/*', async () => 'ok')
    return { url: await app.listen({ port: 0, host: '127.0.0.1' }), close: () => app.close() }
  },
  async Hono(limiter, rules, told) {
    const app = new Hono()
    app.onError((error, c) => (told.push(error), c.text('failed', 500)))
    const view = (c: Context) => ({ path: c.req.path, header: (name: string) => c.req.header(name), socket: c.env.incoming.socket })
    app.use(honoLimit({ limiter, rules: rulesFor(rules, view) }))
    await limiter.ready()
    app.get('*', (c) => c.text('ok'))
    return listening(createServer(getRequestListener(app.fetch)))
  },
}

const caller = (view: View) => (view.header('x-api-key') as string | undefined) ?? UNLIMITED
const on = (path: string) => (view: View) => (view.path === path ? caller(view) : UNLIMITED)
const minute = { name: 'default', key: caller, limit: new SlidingLog(3, '1m') }
const tokens = { name: 'tokens', key: on('/spend'), limit: new TokenBucket(1000, 1, '1h'), estimate: 400 }
let number = 0

/** A limiter that ends with the test. Tests wait longer than a service would: a machine may be busy. */
function limiterOf(t: TestContext, { port }: Server, options: RateLimiterOptions = {}): RateLimiter {
  const limiter = new RateLimiter(new Redis(port, { lazyConnect: true }), { prefix: `w${(number += 1)}:`, timeoutMs: 3000, logger: () => undefined, ...options })
  t.after(() => limiter.close())
  return limiter
}

for (const [framework, make] of Object.entries(APPLICATIONS)) {
  onServer(`${framework}: the middleware`, (server) => {
    async function started(t: TestContext, rules: Rule<View>[], options?: RateLimiterOptions) {
      const limiter = limiterOf(t, server, options)
      const told: unknown[] = []
      const app = await make(limiter, rules, told)
      t.after(() => app.close())
      const ask = async (path = '/', user = 'ann') => (await fetch(app.url + path, { headers: { 'x-api-key': user } })).status
      return { ask, told, port: Number(new URL(app.url).port), prefix: limiter.connected.prefix }
    }

    test('a client that hangs up while the rules are asked, or in a queue, gives back once what they take', async (t) => {
      const asked: string[] = []
      const rules = [
        tokens,
        { name: 'streams', key: (view: View) => (asked.push(view.path), caller(view)), limit: new Concurrent(1, '1h') },
        { name: 'queue', key: on('/queued'), limit: new LeakyBucket(9, 1, '1h') },
      ]
      const { ask, port, prefix } = await started(t, rules, { timeoutMs: 20_000, fail: 'closed' })
      const left = async (name: string, ...words: string[]) => (await server.cli('RL.PEEK', prefix + name, ...words, 'COST', '0')).split('\n')[2]
      const isReleased = async () => (await left('streams:ann', 'CONCURRENT', '1', '1h', 'nobody')) === '1'
      const calls = async (name: string) => new RegExp(`cmdstat_rl.${name}:calls=(\\d+)`).exec(await server.cli('INFO', 'commandstats'))?.[1]
      const hangUp = async (path: string, meanwhile: () => Promise<unknown>) => {
        asked.length = 0
        const socket = connect(port, '127.0.0.1')
        socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nx-api-key: ann\r\n\r\n`)
        await until(() => asked.includes(path), 'a request')
        await meanwhile()
        socket.destroy()
        await once(socket, 'close')
        await pause(50)
      }
      assert.equal(await ask('/queued'), 200)
      await until(isReleased, 'a release')
      await server.cli('CONFIG', 'RESETSTAT')
      server.process.kill('SIGSTOP')
      await hangUp('/spend', () => pause(50)).finally(() => server.process.kill('SIGCONT'))
      await until(isReleased, 'a release after the answer')
      await until(async () => (await left('tokens:ann', 'TOKENBUCKET', '1000', '1', '1h')) === '1000', 'a settlement at 0')
      await hangUp('/queued', () => until(async () => (await calls('multi')) === '2', 'a place in the queue'))
      await until(isReleased, 'a release of what waits for its turn')
      await pause(200)
      assert.deepEqual(await Promise.all(['multi', 'release', 'multisettle'].map(calls)), ['2', '2', '1'])
    })

    test('a client that has gone before a rule asks for its address is no error', async (t) => {
      let go: (() => void) | undefined
      const key = async ({ path, socket }: View) => {
        if (path === '/gone') await new Promise<void>((resolve) => (go = resolve))
        return clientAddress({ socket })
      }
      const { ask, told, port } = await started(t, [{ ...minute, key }])
      const socket = connect(port, '127.0.0.1')
      socket.write('GET /gone HTTP/1.1\r\nHost: x\r\n\r\n')
      await until(() => go !== undefined, 'a request')
      await once(socket.resetAndDestroy(), 'close')
      go!()
      assert.deepEqual([await ask(), told], [200, []])
    })

    test('a wrong rule is an exception at the start, which names it', async (t) => {
      const wrong = { ...minute, limit: new SlidingLog(2 ** 40, '1m') }
      await assert.rejects(started(t, [wrong]), { name: 'ConfigurationError', message: /rule 'default': .*SLIDINGLOG.*limit must be an integer/ })
    })

    test('a call that the server rejects is an error, and never let through', async (t) => {
      const { ask, prefix } = await started(t, [minute])
      await server.cli('SET', `${prefix}default:ann`, 'a string')
      assert.deepEqual([await ask(), await ask('/', 'bob')], [500, 200])
    })
  })
}

const ALL = { name: 'all', key: () => 'all', limit: '100/m' }
const LOGIN = { name: 'login', key: () => 'ann', limit: '2/m' }
const LEGACY = { name: 'old', key: () => 'ann', limit: '5/m' }
const TRIED = { name: 'tried', key: clientAddress, limit: '3/h', counts: (status: number) => status >= 400 }
const EXPOSE = 'Access-Control-Expose-Headers'
const answered = async (status = ''): Promise<200> => {
  if (status === 'none') throw new Error('it failed')
  return status === 'never' ? new Promise(() => undefined) : (Number(status) as 200)
}
const left = (decisions: Record<string, { remaining: number }>) =>
  Object.fromEntries(Object.entries(decisions).map(([name, { remaining }]) => [name, remaining]))
const own = (name: string, { retryAfter, decisions }: { retryAfter: number | null; decisions: Readonly<Record<string, { limit: number }>> }) => ({
  refused: name,
  soon: retryAfter !== null && retryAfter <= 30_000,
  limit: decisions[name]?.limit,
})

const FRAMEWORKS: Record<string, (limiter: RateLimiter) => Promise<App>> = {
  async Express(limiter) {
    const app = express().set('env', 'test')
    app.use(expressLimit({ limiter, rules: [ALL], skip: (req: Request) => req.path === '/health' }))
    app.get('/health', (_req, res) => void res.json('ok'))
    app.get('/login', expressLimit({ limiter, rules: [LOGIN], onRefused: (_req, res, refusal) => res.json(own('login', refusal)) }), (req, res) => void res.json(left(req.decisions)))
    app.all('/old', expressLimit({ limiter, rules: [LEGACY], headers: 'legacy', preflights: true, expose: true }), (_req, res) => void res.json('ok'))
    app.use('/tried', (_req, res, next) => void (res.set(EXPOSE, 'ETag'), next()), expressLimit({ limiter, rules: [TRIED], expose: true }))
    app.get('/tried', async ({ query }, res) => void res.status(await answered(query['status'] as string)).json('ok'))
    return listening(createServer(app))
  },
  async Fastify(limiter) {
    const app = fastify()
    app.addHook('onRequest', async ({ url }, reply) => void (url.startsWith('/tried') && reply.header(EXPOSE, 'ETag')))
    await app.register(fastifyLimit, { limiter, rules: [ALL], skip: async (request) => request.url === '/health' })
    app.get('/health', async () => 'ok')
    const ratelimit = { rules: [LOGIN], onRefused: (_request: unknown, _reply: unknown, refusal: Parameters<typeof own>[1]) => own('login', refusal) }
    app.get('/login', { config: { ratelimit } }, async (request) => left(request.decisions))
    app.route({ method: ['GET', 'OPTIONS'], url: '/old', config: { ratelimit: { rules: [LEGACY], headers: 'legacy', preflights: true, expose: true } }, handler: async () => 'ok' })
    const tried = { config: { ratelimit: { rules: [TRIED], expose: true } } }
    app.get<{ Querystring: { status: string } }>('/tried', tried, async ({ query }, reply) => reply.code(await answered(query.status)).send('ok'))
    app.get('/free', { config: { ratelimit: false } }, async () => 'ok')
    return { url: await app.listen({ port: 0, host: '127.0.0.1' }), close: () => app.close() }
  },
  async Hono(limiter) {
    const app = new Hono().onError((_error, c) => c.text('failed', 500))
    app.use(honoLimit({ limiter, rules: [ALL], skip: (c) => c.req.path === '/health' }))
    app.get('/health', (c) => c.json('ok'))
    app.get('/login', honoLimit({ limiter, rules: [LOGIN], onRefused: (c: Context, refusal) => c.json(own('login', refusal)) }), (c) => c.json(left(c.get('decisions'))))
    app.all('/old', honoLimit({ limiter, rules: [LEGACY], headers: 'legacy', preflights: true, expose: true }), (c) => c.json('ok'))
    app.use('/tried', cors({ origin: '*', exposeHeaders: ['ETag'] }), honoLimit({ limiter, rules: [TRIED], expose: true }))
    app.get('/tried', async (c) => c.body('ok', await answered(c.req.query('status'))))
    return listening(createServer(getRequestListener(app.fetch)))
  },
}

onServer('limits of a route', (server) => {
  const headersOf = (response: Response) => ['ratelimit-policy', 'ratelimit', 'retry-after'].map((name) => response.headers.get(name)?.replace(/;t=\d+/g, '') ?? null)

  for (const [framework, make] of Object.entries(FRAMEWORKS)) {
    test(`add up with those of all routes, and answer in their own way: ${framework}`, async (t) => {
      const limiter = limiterOf(t, server)
      const app = await make(limiter)
      t.after(() => app.close())
      const ask = (path: string) => fetch(app.url + path)

      const first = await ask('/login')
      assert.deepEqual(headersOf(first), ['"all";q=100;w=60, "login";q=2;w=60', '"all";r=99, "login";r=1', null])
      assert.deepEqual(await first.json(), { all: 99, login: 1 })
      await ask('/login')
      const refused = await ask('/login')
      const [policy, rest, retry] = headersOf(refused)
      assert.deepEqual([refused.status, policy, rest], [429, '"all";q=100;w=60, "login";q=2;w=60', '"login";r=0'])
      assert.ok(Number(retry) >= 29 && Number(retry) <= 30, String(retry))
      assert.match(refused.headers.get('content-type') ?? '', /^application\/json/)
      assert.deepEqual(await refused.json(), { refused: 'login', soon: true, limit: 2 })

      const health = await ask('/health')
      assert.deepEqual([health.status, ...headersOf(health)], [200, null, null, null])
      const old = await ask('/old')
      assert.deepEqual(['limit', 'remaining'].map((name) => old.headers.get(`x-ratelimit-${name}`)), ['5', '4'])
      const seconds = Number(old.headers.get('x-ratelimit-reset')) - Date.now() / 1000
      assert.ok(seconds > 10 && seconds < 14, String(seconds))
      if (framework === 'Fastify') assert.deepEqual(headersOf(await ask('/free')), [null, null, null])
    })

    test(`count failures, also of a handler that throws, and hang-ups, and say so to scripts of other origins: ${framework}`, async (t) => {
      const limiter = limiterOf(t, server)
      const app = await make(limiter)
      t.after(() => app.close())
      const key = `${limiter.connected.prefix}tried:127.0.0.1`
      const tried = async (status: number | string) => {
        const given = await fetch(`${app.url}/tried?status=${status}`, { signal: AbortSignal.timeout(status === 'never' ? 200 : 9000) }).catch(() => undefined)
        await until(async () => !(await server.cli('RL.INFO', key)).includes('holds'), 'a settlement')
        const shown = given && [given.status, /"tried";r=(\d)/.exec(given.headers.get('ratelimit') ?? '')?.[1], given.headers.get(EXPOSE)]
        return given?.status === 429 ? [...shown!, given.headers.get('content-type')?.split(';')[0]] : shown
      }
      const names = 'ETag, RateLimit-Policy, RateLimit, Retry-After'
      const answers = [await tried(200), await tried(202), await tried(401), await tried('never'), await tried('none'), await tried(200)]
      assert.deepEqual(answers, [[200, '2', names], [202, '2', names], [401, '2', names], undefined, [500, '0', names], [429, '0', names, 'application/problem+json']])

      const asks = async (path: string, headers: Record<string, string>) => {
        const { status, headers: told } = await fetch(app.url + path, { method: 'OPTIONS', headers })
        return [status === 429, told.get('ratelimit'), told.get('x-ratelimit-remaining'), told.get(EXPOSE)]
      }
      const preflight = { origin: 'http://other', 'access-control-request-method': 'GET' }
      assert.deepEqual(await asks('/login', preflight), [false, null, null, null])
      assert.match(String((await asks('/none', {}))[1]), /^"all"/)
      assert.deepEqual(await asks('/old', preflight), [false, null, '4', 'X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After'])
    })
  }

  test('a program for Express has them by route and by router, with a 429 of its own', async (t) => {
    const limiter = limiterOf(t, server)
    const app = await listening(createServer(application(limiter)))
    t.after(() => app.close())
    await limiter.ready({ required: true })
    const ask = (path: string, method = 'GET') => fetch(app.url + path, { method, headers: { 'x-user': 'ann' } })
    assert.deepEqual(await (await ask('/search')).json(), { left: 29 })
    const changes = []
    for (let i = 0; i < 3; i += 1) changes.push(await ask('/account/password', 'POST'))
    assert.deepEqual(changes.map(({ status }) => status), [200, 200, 429])
    assert.equal(changes[0]!.headers.get('ratelimit-policy'), '"all";q=1000;w=1, "account";q=5;w=60, "password";q=2;w=3600')
    const body = (await changes[2]!.json()) as { error: string; seconds: number }
    assert.equal(body.error, 'too many requests: password')
    assert.equal(String(body.seconds), changes[2]!.headers.get('retry-after'))
    assert.equal((await ask('/health')).headers.get('ratelimit-policy'), null)
  })

  test('a response of Express that has begun meanwhile is no crash', async (t) => {
    const limiter = limiterOf(t, server)
    const app = express()
    const told: unknown[] = []
    app.use((_req, res, next) => {
      res.write('early')
      next()
    })
    app.use(expressLimit({ limiter, rules: [{ name: 'default', key: () => 'all', limit: '1/h' }] }))
    app.use((_req, res) => void res.end(' and late'))
    app.use(((error, _req, res, _next) => void (told.push((error as Error).message), res.destroy())) as ErrorRequestHandler)
    const { url, close } = await listening(createServer(app))
    t.after(close)
    const ask = () => fetch(url).then((response) => response.text())
    assert.equal(await ask(), 'early and late')
    await assert.rejects(ask())
    assert.deepEqual(told, ['the request is refused, but its response has begun'])
  })

  test('wrong options are errors at the start', async (t) => {
    const limiter = limiterOf(t, server)
    assert.throws(() => expressLimit({ limiter, rules: [ALL], skip: true as never }), /skip must be a function, not true/)
    assert.throws(() => upgrade({ limiter, rules: [ALL] }, undefined as never), /listener must be a function/)
    assert.throws(() => honoLimit({ limiter, rules: [ALL], onRefused: 'no' as never }), /onRefused must be a function, not 'no'/)
    assert.throws(() => expressLimit({ limiter, rules: [ALL], onRefuse: () => undefined } as never), /there is no option 'onRefuse'/)
    const app = fastify()
    await app.register(fastifyLimit, { limiter })
    assert.throws(() => app.get('/', { config: { ratelimit: { rules: [] } } }, async () => 'ok'), /neither rules nor a shed/)
    await app.close()
  })
})
