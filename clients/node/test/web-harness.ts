/** A server, and applications of a framework in front of it. */

import { once } from 'node:events'
import type { Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { Redis } from 'ioredis'
import { RateLimiter, SlidingLog, TokenBucket, UNLIMITED, type RateLimiterOptions } from 'redis-ratelimit'
import type { Rule } from 'redis-ratelimit/express'
import { startServer, until, type Server } from './servers.js'
import type { Application, Make, View } from './web-application.js'

export const caller = (view: View) => view.header('x-api-key') ?? UNLIMITED
export const on = (path: string) => (view: View) => (view.path === path ? caller(view) : UNLIMITED)
export const minute = { name: 'default', key: caller, limit: new SlidingLog(3, '1m') }
export const tokens = { name: 'tokens', key: on('/spend'), limit: new TokenBucket(1000, 1, '1h'), estimate: 400 }

/** An application on a server. */
export async function listening(server: HttpServer): Promise<Application> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

export interface Response {
  status: number
  headers: Headers
  body: string
}

interface StartOptions extends RateLimiterOptions {
  /** That of another server. */
  port?: number
}

let number = 0

export class Web {
  redis!: Redis
  #server!: Server

  constructor(private readonly make: Make) {}

  async start(): Promise<void> {
    this.#server = await startServer()
    this.redis = new Redis(this.#server.port)
  }

  async stop(): Promise<void> {
    this.redis?.disconnect()
    await this.#server?.stop()
  }

  /** Starts an application, which ends with the test. */
  async started(t: TestContext, rules: Rule<View>[], { port = this.#server.port, ...options }: StartOptions = {}) {
    const lines: string[] = []
    const prefix = `t${number++}:`
    // Tests wait longer than a service would: a machine may be busy.
    const all = { prefix, timeoutMs: 3000, logger: (line: string) => lines.push(line), ...options }
    const limiter = new RateLimiter(new Redis(port, { lazyConnect: true }), all)
    t.after(() => limiter.close())
    const app = await this.make({ limiter, rules })
    t.after(() => app.close())
    const ask = async (path = '/', headers: Record<string, string> = {}): Promise<Response> => {
      const response = await fetch(app.url + path, { headers: { 'x-api-key': 'ann', ...headers } })
      const body = await response.text().catch((error: Error) => `broken off: ${error.message}`)
      return { status: response.status, headers: response.headers, body }
    }
    const left = async (name: string, ...words: (string | number)[]) =>
      ((await this.redis.call('RL.PEEK', prefix + name, ...words, 'COST', 0)) as number[])[2] ?? 0
    const tokensLeft = () => left('tokens:ann', 'TOKENBUCKET', 1000, 1, '1h')
    const settled = (name = 'tokens:ann') =>
      until(async () => !String(await this.redis.call('RL.INFO', prefix + name)).includes('holds'), 'a settlement')
    return { url: app.url, ask, left, tokensLeft, settled, lines, prefix }
  }
}
