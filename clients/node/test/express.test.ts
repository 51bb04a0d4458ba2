import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { describe, test } from 'node:test'
import express, { type ErrorRequestHandler, type Request } from 'express'
import { Redis } from 'ioredis'
import { RateLimiter } from 'redis-ratelimit'
import { ratelimit } from 'redis-ratelimit/express'
import { startServer } from './servers.js'
import { answer, rulesFor, shedFor, type View } from './web-application.js'
import { webSuite } from './web.js'

const view = (req: Request): View => ({
  path: req.path,
  query: new URL(req.originalUrl, 'http://x').searchParams,
  header: (name) => req.get(name),
})

webSuite('Express', async ({ limiter, rules, shed }) => {
  const app = express()
  app.set('env', 'test')
  app.use(ratelimit({ limiter, rules: rulesFor(rules, view), shed: shedFor(shed, view) }))
  await limiter.ready()
  app.use((req, res) => {
    const { parts, error } = answer(view(req), req.spent)
    if (error) throw error
    Readable.from(parts)
      .on('error', () => res.destroy())
      .pipe(res)
      .once('close', function (this: typeof res) {
        this.destroy()
      })
  })
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
})

describe('Express without a check at the start', () => {
  test('a request with a wrong rule fails', async (t) => {
    const server = await startServer()
    t.after(() => server.stop())
    const limiter = new RateLimiter(new Redis(server.port, { lazyConnect: true }), { timeoutMs: 3000 })
    t.after(() => limiter.close())
    const app = express()
    app.use(ratelimit({ limiter, rules: [{ name: 'api', key: (req) => req.get('x-api-key') ?? req.ip ?? '', policy: 'nobody' }] }))
    app.use(((error, _req, res, _next) => void res.status(500).send((error as Error).message)) as ErrorRequestHandler)
    const http = app.listen(0, '127.0.0.1')
    t.after(() => http.close())
    await once(http, 'listening')
    const response = await fetch(`http://127.0.0.1:${(http.address() as AddressInfo).port}`)
    assert.equal(response.status, 500)
    assert.match(await response.text(), /RL.ASK at .*no such policy 'nobody'/)
  })

  test('a gate that is mounted twice charges once', async (t) => {
    const server = await startServer()
    t.after(() => server.stop())
    const lines: string[] = []
    const logger = (line: string) => lines.push(line)
    const limiter = new RateLimiter(new Redis(server.port, { lazyConnect: true }), { timeoutMs: 3000, logger })
    t.after(() => limiter.close())
    const app = express()
    const gate = ratelimit({ limiter, rules: [{ name: 'default', key: () => 'all', limit: '2/h' }] })
    app.use(gate, gate, (_req, res) => void res.end())
    const http = app.listen(0, '127.0.0.1')
    t.after(() => http.close())
    await once(http, 'listening')
    const statuses = []
    for (let i = 0; i < 3; i += 1) statuses.push((await fetch(`http://127.0.0.1:${(http.address() as AddressInfo).port}`)).status)
    assert.deepEqual(statuses, [200, 200, 429])
    assert.match(lines.join('\n'), /^\S*.*rule 'default' stands before a request twice: it is asked once$/)
  })

  test('a response that has begun meanwhile is no crash', async (t) => {
    const server = await startServer()
    t.after(() => server.stop())
    const limiter = new RateLimiter(new Redis(server.port, { lazyConnect: true }), { timeoutMs: 3000 })
    t.after(() => limiter.close())
    const app = express()
    const told: unknown[] = []
    app.use((_req, res, next) => {
      res.write('early')
      next()
    })
    app.use(ratelimit({ limiter, rules: [{ name: 'default', key: () => 'all', limit: '1/h' }] }))
    app.use((_req, res) => void res.end(' and late'))
    app.use(((error, _req, res, _next) => void (told.push((error as Error).message), res.destroy())) as ErrorRequestHandler)
    const http = app.listen(0, '127.0.0.1')
    t.after(() => http.close())
    await once(http, 'listening')
    const ask = () => fetch(`http://127.0.0.1:${(http.address() as AddressInfo).port}`).then((response) => response.text())
    assert.equal(await ask(), 'early and late')
    await assert.rejects(ask())
    assert.deepEqual(told, ['the request is refused, but its response has begun'])
  })
})
