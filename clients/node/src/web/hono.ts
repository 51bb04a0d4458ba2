/** Middleware for Hono 4. */

import type { IncomingMessage } from 'node:http'
import type { Context, MiddlewareHandler } from 'hono'
import { ASKS, EXPOSE, isPreflight } from '../gate/cors.js'
import { entered, type NodeResponse } from '../gate/over.js'
import type { Decision } from '../decide/decision.js'
import { Gate, type GateOptions, type Passage, type Refusal, type Spent } from '../gate/gate.js'
import { stackOf } from '../gate/stack.js'

export { UNLIMITED } from '../gate/gate.js'
export type { GateOptions, HeaderStyle, LimitRule, PerRequest, PolicyRule, Refusal, Rule, Shed, Spent } from '../gate/gate.js'

declare module 'hono' {
  interface ContextVariableMap {
    /** What the handler counts, by the names of the rules with an estimate. */
    spent: Spent
    /** The decisions by the names of the rules. There are none without an answer. */
    decisions: Readonly<Record<string, Decision>>
  }
}

/** What the middleware is made of. */
export interface RateLimitOptions extends GateOptions<Context> {
  /** Answers a request that does not go on, in place of problem details: by `c.json` or the like. Its status and headers are set. */
  onRefused?: ((c: Context, refusal: Refusal) => Response | Promise<Response>) | undefined
}

/**
 * Limits requests.
 *
 * ```js
 * const limiter = new RateLimiter(redis)
 * const address = (c) => getConnInfo(c).remote.address // of '@hono/node-server/conninfo'
 * app.use(ratelimit({ limiter, rules: [{ name: 'default', key: address, limit: '100/m' }] }))
 * await limiter.ready()
 * ```
 *
 * A refusal is a 429 with `application/problem+json`, `Retry-After`, `RateLimit-Policy` and `RateLimit`. What is wrong is
 * thrown, for `app.onError`. Leases are released and budgets settled when the response is finished, and when the client
 * hangs up. With `@hono/node-server` that is when the response of Node.js closes, or the WebSocket, else when its body has
 * been read.
 *
 * Handshakes of WebSockets run the handler of any `GET`, also of one that upgrades nothing. So a rule with `websocket: false` does
 * not limit what such handlers do. Of a refusal `@hono/node-server` sends the status and the headers, `@hono/node-ws` the status
 * alone since 1.3, and a 400 before. It does the same for a path without a WebSocket.
 *
 * @throws ConfigurationError if a rule is wrong
 */
export function ratelimit(options: RateLimitOptions): MiddlewareHandler {
  const gate = new Gate(options)
  const { onRefused } = options
  return async (c, next) => {
    const { incoming, outgoing } = (c.env ?? {}) as { incoming?: IncomingMessage; outgoing?: NodeResponse }
    // The handshake of a WebSocket has no response of Node.js. What it takes is kept as long as the socket is open.
    const node = outgoing ?? incoming?.socket
    const preflight = isPreflight(c.req.method, c.req.header(ASKS))
    const what = { websocket: incoming !== undefined && outgoing === undefined, preflight }
    const passage = await entered(node ?? answerTo(c.req.raw.signal), gate.enter(c, c.get('spent'), stackOf(c), what))
    if (passage === undefined) return c.body(null, 503)
    const { refusal } = passage
    const head = (headers: Refusal['headers']) => {
      for (const [name, value] of Object.entries(gate.exposed(headers, c.res.headers.get(EXPOSE)))) c.header(name, value)
    }
    c.set('decisions', passage.decisions)
    if (refusal) {
      c.status(refusal.status)
      head(onRefused ? refusal.headers : passage.headers)
      return onRefused ? onRefused(c, refusal) : c.body(refusal.body)
    }
    c.set('spent', passage.spent)
    try {
      await next()
    } catch (error) {
      if (!node) void passage.end()
      throw error
    }
    head(passage.headers)
    if (!node) c.res = endingWith(c.res, passage, c.req.raw.method)
    return undefined
  }
}

/** The response to a request that ends only by its signal. */
function answerTo(signal: AbortSignal): NodeResponse {
  return { get destroyed() { return signal.aborted }, once: (_close, listener) => signal.addEventListener('abort', listener, { once: true }) }
}

/** The same response. When its body has been read, failed or is cancelled, the pass ends. */
function endingWith(response: Response, passage: Passage, method: string): Response {
  // Hono drops the body of a reply to HEAD: it neither reads nor cancels it.
  if (response.body === null || method === 'HEAD') {
    void passage.end(response.status)
    return response
  }
  const reader = response.body.getReader()
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (!done) return controller.enqueue(value)
        void passage.end(response.status)
        controller.close()
      } catch (error) {
        void passage.end(response.status)
        controller.error(error)
      }
    },
    async cancel(reason) {
      void passage.end(response.status)
      await reader.cancel(reason)
    },
  })
  return new Response(body, response)
}
