/** What only the middleware of Hono does. */

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Hono, type Context } from 'hono'
import { stream } from 'hono/streaming'
import { Redis } from 'ioredis'
import { Concurrent, RateLimiter, UNLIMITED } from 'redis-ratelimit'
import { ratelimit } from 'redis-ratelimit/hono'
import { startServer, until } from './servers.js'

describe('Hono without a server of Node.js', () => {
  test('a lease ends when the body has been read, is cancelled, or is not sent, and when the request is aborted', async (t) => {
    const server = await startServer()
    t.after(() => server.stop())
    const limiter = new RateLimiter(new Redis(server.port, { lazyConnect: true }), { timeoutMs: 3000 })
    t.after(() => limiter.close())
    const key = (c: Context) => c.req.header('x-user') ?? UNLIMITED
    const app = new Hono().use(ratelimit({ limiter, rules: [{ name: 'streams', key, limit: new Concurrent(1, '1m') }] }))
    app.get('/empty', (c) => c.body(null, 204))
    app.get('/text', (c) => c.text('ok'))
    app.get('/fetched', () => Response.json({ ok: true }))
    app.get('/endless', (c) => stream(c, async (out) => void (await out.write('tick'), await out.sleep(3000))))
    const ask = (path: string) => app.request(path, { headers: { 'x-user': 'ann' } })
    const free = () => until(async () => (await limiter.peek('streams:ann', new Concurrent(1, '1m', { id: 'x' }), { cost: 0 })).remaining === 1, 'a release')

    const text = await ask('/text')
    assert.deepEqual([text.headers.get('ratelimit'), (await ask('/text')).status], ['"streams";r=0', 429])
    assert.equal(await text.text(), 'ok')
    await free()
    assert.equal((await ask('/empty')).status, 204)
    await free()
    const fetched = await ask('/fetched')
    assert.deepEqual([fetched.headers.get('ratelimit'), await fetched.json()], ['"streams";r=0', { ok: true }])
    await free()
    const headed = await app.request('/text', { method: 'HEAD', headers: { 'x-user': 'ann' } })
    assert.deepEqual([headed.status, headed.headers.get('ratelimit'), headed.body], [200, '"streams";r=0', null])
    await free()
    const endless = await ask('/endless')
    assert.equal((await ask('/text')).status, 429)
    await endless.body?.cancel()
    await free()
    const gone = new AbortController()
    server.process.kill('SIGSTOP')
    const left = app.request('/text', { headers: { 'x-user': 'ann' }, signal: gone.signal })
    await pause(50)
    gone.abort()
    server.process.kill('SIGCONT')
    assert.equal((await left).status, 503)
    await free()
  })
})
