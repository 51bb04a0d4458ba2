/** WebSockets behind the middleware of each framework: handshakes are limited, and what they take lasts until the socket closes. */

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server as HttpServer } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import websocket from '@fastify/websocket'
import { serve, upgradeWebSocket } from '@hono/node-server'
import fastify from 'fastify'
import { Hono } from 'hono'
import { clientAddress, Concurrent, RateLimiter } from 'redis-ratelimit'
import { upgrade } from 'redis-ratelimit/express'
import { ratelimit as fastifyLimit } from 'redis-ratelimit/fastify'
import { ratelimit as honoLimit } from 'redis-ratelimit/hono'
import { WebSocket, WebSocketServer } from 'ws'
import { KINDS } from './kinds.js'
import { limiterOn } from './limiters.js'
import { startServer, until, type Server } from './servers.js'

const RULES = [
  { name: 'sockets', key: clientAddress, limit: new Concurrent(2, '1m') },
  { name: 'pages', key: clientAddress, limit: '1/h', websocket: false },
]
const ONE = new Concurrent(2, '1m', { id: 'nobody' })

type App = { port: number; close(): unknown }

const FIELDS = ['Host: x', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==']
const handshake = (path: string) => [`GET ${path} HTTP/1.1`, ...FIELDS, '', ''].join('\r\n')

async function listening(server: HttpServer): Promise<App> {
  if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening')
  return { port: (server.address() as AddressInfo).port, close: () => (server.closeAllConnections(), server.close()) }
}

// Each says hello to a socket, and `ok` to a request.
const FRAMEWORKS: Record<string, (limiter: RateLimiter) => Promise<App>> = {
  async Express(limiter) {
    const wss = new WebSocketServer({ noServer: true })
    const server = createServer()
    server.on('upgrade', upgrade({ limiter, rules: RULES }, (request, socket, head) => wss.handleUpgrade(request, socket, head, (ws) => ws.send('hello'))))
    return listening(server)
  },
  async Fastify(limiter) {
    const app = fastify()
    await app.register(websocket)
    await app.register(fastifyLimit, { limiter, rules: RULES })
    app.get('/', { websocket: true }, (socket) => socket.send('hello'))
    await app.listen({ port: 0, host: '127.0.0.1' })
    return { port: (app.server.address() as AddressInfo).port, close: () => app.close() }
  },
  async Hono(limiter) {
    const app = new Hono().use(honoLimit({ limiter, rules: RULES }))
    app.get('/', upgradeWebSocket(() => ({ onOpen: (_event, socket) => socket.send('hello') })), (c) => c.text('ok'))
    const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1', websocket: { server: new WebSocketServer({ noServer: true }) as never } })
    await once(server, 'listening')
    return listening(server as HttpServer)
  },
}

describe('handshakes of WebSockets', { timeout: 60_000 }, () => {
  let server: Server
  before(async () => void (server = await startServer()))
  after(() => server?.stop())

  for (const [framework, make] of Object.entries(FRAMEWORKS)) {
    test(`are limited, and hold their lease until the socket closes: ${framework}`, async (t) => {
      const { limiter } = await limiterOn(t, KINDS[0]!, server.port, { prefix: `${framework}:`, timeoutMs: 3000 })
      const app = await make(limiter)
      t.after(() => app.close())
      const url = `ws://127.0.0.1:${app.port}/`
      const opened = async () => {
        const socket = new WebSocket(url)
        const [hello] = (await once(socket, 'message')) as [Buffer]
        assert.equal(String(hello), 'hello')
        return socket
      }
      const free = async () => (await limiter.peek('sockets:127.0.0.1', ONE, { cost: 0 })).remaining
      const [first, second] = [await opened(), await opened()]
      assert.equal(await free(), 0)
      const third = new WebSocket(url)
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
        const hasty = connect(app.port, '127.0.0.1')
        hasty.write(handshake('/'), () => setTimeout(() => hasty.resetAndDestroy(), i))
        await once(hasty, 'close')
      }
      ;(await opened()).close()
      await until(async () => (await free()) === 2, 'a release of the hasty')
      if (framework === 'Express') return
      const pages = [await fetch(`http://127.0.0.1:${app.port}/`), await fetch(`http://127.0.0.1:${app.port}/`)]
      assert.equal(pages[1]!.status, 429)
      assert.match(pages[0]!.headers.get('ratelimit') ?? '', /"pages";r=0/)
    })
  }

  test('that fail are told to the application, and the client gets a 500', async (t) => {
    const { limiter, lines } = await limiterOn(t, KINDS[0]!, server.port, { prefix: 'wrong:', timeoutMs: 3000 })
    const told: unknown[] = []
    const key = ({ url }: IncomingMessage) => (url === '/wrong' ? '' : 'ann')
    const rules = [{ name: 'sockets', key, limit: '9/h' }]
    const failing = () => {
      throw new Error('no room')
    }
    const http = createServer().on('upgrade', upgrade({ limiter, rules, onError: (error) => told.push(String(error)) }, failing))
    const app = await listening(http)
    t.after(() => app.close())
    const failed = async (path: string) => {
      const socket = new WebSocket(`ws://127.0.0.1:${app.port}${path}`)
      const [error] = (await once(socket, 'error')) as [Error]
      return error.message
    }
    assert.match(await failed('/wrong'), /500/)
    assert.match(await failed('/'), /hang up/)
    assert.deepEqual(told, ["ConfigurationError: rule 'sockets': key must return a text that is not empty, or UNLIMITED, not ''", 'Error: no room'])
    assert.deepEqual(lines, [])
    // A client that does not hang up keeps no socket.
    const stays = connect({ port: app.port, host: '127.0.0.1', allowHalfOpen: true }).resume()
    stays.write(handshake('/wrong'))
    await once(stays, 'end')
    const open = () => new Promise<number>((resolve) => http.getConnections((_error, count) => resolve(count)))
    await until(async () => (await open()) === 0, 'an end of all sockets')
  })
})
