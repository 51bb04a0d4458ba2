/**
 * Middleware for Hono 4.
 *
 * @module
 */

import type { Context, MiddlewareHandler } from 'hono'
import { endWith, type NodeResponse } from '../gate/response.js'
import { Gate, type GateOptions, type Pass, type Spent } from '../gate/gate.js'

export type { GateOptions, LimitRule, PerRequest, PolicyRule, Rule, Shed, Spent } from '../gate/gate.js'

declare module 'hono' {
  interface ContextVariableMap {
    /** What the handler counts, by the names of the rules with an estimate. */
    spent: Spent
  }
}

/** The middleware, and a check of its rules for the start. */
export interface RateLimitHandler extends MiddlewareHandler {
  /**
   * Checks the rules against the server. Else the first request does.
   *
   * @throws ConfigurationError if the module is missing, or a rule is wrong
   */
  ready(): Promise<void>
}

/**
 * Limits requests.
 *
 * ```js
 * const limiter = new RateLimiter(redis)
 * const address = (c) => getConnInfo(c).remote.address // of '@hono/node-server/conninfo'
 * const limits = ratelimit({ limiter, rules: [{ name: 'default', key: address, limit: '100/m' }] })
 * await limits.ready()
 * app.use(limits)
 * ```
 *
 * A refusal is a 429 with `application/problem+json`, `Retry-After`, `RateLimit-Policy` and `RateLimit`. What is wrong is
 * thrown, for `app.onError`. Leases are released and budgets settled when the response is finished, and when the client
 * hangs up. With `@hono/node-server` that is when the response of Node.js closes, else when its body has been read.
 *
 * @throws ConfigurationError if a rule is wrong
 */
export function ratelimit(options: GateOptions<Context>): RateLimitHandler {
  const gate = new Gate(options)
  const handler: MiddlewareHandler = async (c, next) => {
    const pass = await gate.enter(c, c.get('spent'))
    if (pass.refusal) return c.body(pass.refusal.body, pass.refusal.status, pass.headers)
    const node = (c.env as { outgoing?: NodeResponse } | undefined)?.outgoing
    if (!(node ? endWith(node, pass) : endWithSignal(c.req.raw.signal, pass))) return c.body(null, 503)
    c.set('spent', pass.spent)
    try {
      await next()
    } catch (error) {
      if (!node) void pass.end()
      throw error
    }
    for (const [name, value] of Object.entries(pass.headers)) c.header(name, value)
    if (!node) c.res = endingWith(c.res, pass, c.req.raw.method)
    return undefined
  }
  return Object.assign(handler, { ready: () => gate.ready() })
}

function endWithSignal(signal: AbortSignal, pass: Pass): boolean {
  if (signal.aborted) {
    void pass.cancel()
    return false
  }
  signal.addEventListener('abort', () => void pass.end(), { once: true })
  return true
}

/** The same response. When its body has been read, failed or is cancelled, the pass ends. */
function endingWith(response: Response, pass: Pass, method: string): Response {
  // Hono drops the body of a reply to HEAD: it neither reads nor cancels it.
  if (response.body === null || method === 'HEAD') {
    void pass.end()
    return response
  }
  const reader = response.body.getReader()
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (!done) return controller.enqueue(value)
        void pass.end()
        controller.close()
      } catch (error) {
        void pass.end()
        controller.error(error)
      }
    },
    async cancel(reason) {
      void pass.end()
      await reader.cancel(reason)
    },
  })
  return new Response(body, response)
}
