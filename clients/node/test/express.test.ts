import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { Readable } from 'node:stream'
import { describe, test } from 'node:test'
import express, { type ErrorRequestHandler, type Request } from 'express'
import { Redis } from 'ioredis'
import { RateLimiter } from 'redis-ratelimit'
import { ratelimit } from 'redis-ratelimit/express'
import { startServer } from './servers.js'
import { answer, rulesFor, type View } from './web-application.js'
import { listening } from './web-harness.js'
import { webSuite } from './web.js'

const view = (req: Request): View => ({
  path: req.path,
  query: new URL(req.originalUrl, 'http://x').searchParams,
  header: (name) => req.get(name),
})

webSuite('Express', async ({ limiter, rules }) => {
  const app = express()
  app.set('env', 'test')
  app.use(ratelimit({ limiter, rules: rulesFor(rules, view) }))
  await limiter.ready()
  app.use((req, res) => {
    Readable.from(answer(view(req), req.spent))
      .on('error', () => res.destroy())
      .pipe(res)
      .once('close', function (this: typeof res) {
        this.destroy()
      })
  })
  return listening(createServer(app))
})

describe('Express without a check at the start', () => {
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
    const { url, close } = await listening(createServer(app))
    t.after(close)
    const ask = () => fetch(url).then((response) => response.text())
    assert.equal(await ask(), 'early and late')
    await assert.rejects(ask())
    assert.deepEqual(told, ['the request is refused, but its response has begun'])
  })
})
