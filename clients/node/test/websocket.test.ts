/** WebSockets behind the middleware of each framework: handshakes are limited, and what they take lasts until the socket closes. */

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, ServerResponse, type IncomingMessage, type Server as HttpServer } from 'node:http'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import websocket from '@fastify/websocket'
import { createAdaptorServer, upgradeWebSocket } from '@hono/node-server'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import { clientAddress, Concurrent, RateLimiter } from 'redis-ratelimit'
import { ratelimit as expressLimit, upgrade } from 'redis-ratelimit/express'
import { ratelimit as fastifyLimit } from 'redis-ratelimit/fastify'
import { ratelimit as honoLimit } from 'redis-ratelimit/hono'
import { WebSocket, WebSocketServer } from 'ws'
import { KINDS } from './kinds.js'
import { limiterOn, onServer } from './limiters.js'
import { listening, until, type App } from './servers.js'

const RULES = [
  { name: 'sockets', key: clientAddress, limit: new Concurrent(2, '1m') },
  { name: 'pages', key: clientAddress, limit: '1/h', websocket: false },
]
const FIELDS = ['Host: x', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==']
const handshake = (path: string) => [`GET ${path} HTTP/1.1`, ...FIELDS, '', ''].join('\r\n')

// Each says hello to a socket.
const FRAMEWORKS: Record<string, (limiter: RateLimiter) => Promise<App>> = {
  async Express(limiter) {
    const wss = new WebSocketServer({ noServer: true })
    const hello = upgrade({ limiter, rules: RULES }, (request, socket, head) => wss.handleUpgrade(request, socket, head, (ws) => ws.send('hello')))
    return listening(createServer().on('upgrade', hello))
  },
  async Fastify(limiter) {
    const app = fastify()
    await app.register(websocket)
    await app.register(fastifyLimit, { limiter, rules: RULES })
    app.get('/', { websocket: true }, (socket) => socket.send('hello'))
    return { url: await app.listen({ port: 0, host: '127.0.0.1' }), close: () => app.close() }
  },
  async Hono(limiter) {
    const app = new Hono().use(honoLimit({ limiter, rules: RULES }))
    app.get('/', upgradeWebSocket(() => ({ onOpen: (_event, socket) => socket.send('hello') })), (c) => c.text('ok'))
    const wss = new WebSocketServer({ noServer: true }) as never
    return listening(createAdaptorServer({ fetch: app.fetch, websocket: { server: wss } }) as HttpServer)
  },
}

onServer('handshakes of WebSockets', (server) => {
  for (const [framework, make] of Object.entries(FRAMEWORKS)) {
    test(`are limited, and hold their lease until the socket closes: ${framework}`, { timeout: 60_000 }, async (t) => {
      const { limiter } = await limiterOn(t, KINDS[0]!, server.port, { prefix: `${framework}:`, timeoutMs: 3000 })
      const app = await make(limiter)
      t.after(() => app.close())
      const opened = async () => {
        const socket = new WebSocket(app.url)
        const [hello] = (await once(socket, 'message')) as [Buffer]
        assert.equal(String(hello), 'hello')
        return socket
      }
      const free = async () => (await limiter.peek('sockets:127.0.0.1', new Concurrent(2, '1m', { id: 'nobody' }), { cost: 0 })).remaining
      const [first, second] = [await opened(), await opened()]
      assert.equal(await free(), 0)
      const third = new WebSocket(app.url)
      third.on('error', () => undefined)
      const [, refused] = (await once(third, 'unexpected-response')) as [unknown, IncomingMessage]
      assert.deepEqual([refused.statusCode, refused.headers['retry-after'], refused.headers['ratelimit']], [429, '1', '"sockets";r=0'])
      third.terminate()
      first.close()
      await until(async () => (await free()) === 1, 'a release')
      second.terminate()
      await until(async () => (await free()) === 2, 'a release of a lost connection')
      // One that does not wait for the answer.
      for (let i = 0; i < 3; i += 1) {
        const hasty = connect(Number(new URL(app.url).port), '127.0.0.1')
        hasty.write(handshake('/'), () => setTimeout(() => hasty.resetAndDestroy(), i))
        await once(hasty, 'close')
      }
      await pause(200)
      await until(async () => (await free()) === 2, 'a release of the hasty')
      if (framework === 'Express') return
      const pages = [await fetch(app.url), await fetch(app.url)]
      assert.equal(pages[1]!.status, 429)
      assert.match(pages[0]!.headers.get('ratelimit') ?? '', /"pages";r=0/)
    })
  }

  test('of express-ws hold their lease until the socket closes, and one that is refused is closed', { timeout: 60_000 }, async (t) => {
    const { limiter } = await limiterOn(t, KINDS[0]!, server.port, { prefix: 'express-ws:', timeoutMs: 3000 })
    const app = express().use(expressLimit({ limiter, rules: RULES }))
    app.use((req) => (req as unknown as { ws: WebSocket }).ws.send('hello'))
    const http = createServer()
    // As the package does it.
    new WebSocketServer({ server: http }).on('connection', (ws, req) => {
      const res = new ServerResponse(req)
      res.writeHead = () => (ws.close(), res)
      app(Object.assign(req, { ws }) as never, res as never)
    })
    const { url, close } = await listening(http)
    t.after(close)
    const free = async () => (await limiter.peek('sockets:127.0.0.1', new Concurrent(2, '1m', { id: 'nobody' }), { cost: 0 })).remaining
    const sockets = [new WebSocket(url), new WebSocket(url)]
    await Promise.all(sockets.map((socket) => once(socket, 'message')))
    assert.equal(await free(), 0)
    await once(new WebSocket(url), 'close')
    for (const socket of sockets) socket.close()
    await until(async () => (await free()) === 2, 'a release')
    assert.equal((await limiter.peek('pages:127.0.0.1', '1/h', { cost: 0 })).remaining, 1)
  })

  test('that fail are told to the application, and the client gets a 500', { timeout: 60_000 }, async (t) => {
    const { limiter, lines } = await limiterOn(t, KINDS[0]!, server.port, { prefix: 'wrong:', timeoutMs: 3000 })
    const told: unknown[] = []
    let asked = 0
    const key = (request: IncomingMessage) => ((asked += 1), request.url === '/wrong' ? '' : clientAddress(request))
    const failing = () => Promise.reject(new Error('no room'))
    const http = createServer().on('upgrade', upgrade({ limiter, rules: [{ name: 'sockets', key, limit: '9/h' }], onError: (error) => told.push(String(error)) }, failing))
    const app = await listening(http)
    t.after(() => app.close())
    const failed = async (path: string) => {
      const socket = new WebSocket(app.url + path)
      const [error] = (await once(socket, 'error')) as [Error]
      return error.message
    }
    assert.match(await failed('/wrong'), /500/)
    assert.match(await failed('/'), /hang up/)
    // One of a client that has gone has no address, and nobody to tell.
    const hasty = connect(Number(new URL(app.url).port), '127.0.0.1')
    hasty.write(handshake('/'), () => hasty.resetAndDestroy())
    await until(() => asked === 3, 'a handshake')
    assert.deepEqual(told, ["ConfigurationError: rule 'sockets': key must return a text that is not empty, or UNLIMITED, not ''", 'Error: no room'])
    assert.deepEqual(lines, [])
    // A client that does not hang up keeps no socket.
    const stays = connect({ port: Number(new URL(app.url).port), host: '127.0.0.1', allowHalfOpen: true }).resume()
    stays.write(handshake('/wrong'))
    await once(stays, 'end')
    const open = () => new Promise<number>((resolve) => http.getConnections((_error, count) => resolve(count)))
    await until(async () => (await open()) === 0, 'an end of all sockets')
  })
})
