/** A plugin for Fastify 4 and 5. */

import type { FastifyInstance, FastifyReply, FastifyRequest, RegisterOptions } from 'fastify'
import { shown } from '../call/arguments.js'
import { ConfigurationError } from '../errors.js'
import type { RateLimiter } from '../limiter.js'
import { ASKS, EXPOSE, isPreflight } from '../gate/cors.js'
import { entered } from '../gate/over.js'
import type { Decision } from '../decide/decision.js'
import { Gate, type GateOptions, type Refusal, type Spent } from '../gate/gate.js'
import { stackOf } from '../gate/stack.js'

export { UNLIMITED } from '../gate/gate.js'
export type { GateOptions, HeaderStyle, LimitRule, PerRequest, PolicyRule, Refusal, Rule, Shed, Spent } from '../gate/gate.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** What the handler counts, by the names of the rules with an estimate. */
    spent: Spent
    /** The decisions by the names of the rules. There are none without an answer. */
    decisions: Readonly<Record<string, Decision>>
  }
  interface FastifyContextConfig {
    /** What limits the requests of this route besides. `false`: nothing does. */
    ratelimit?: RouteRateLimit | false | undefined
  }
}

/** What limits the requests of a route. */
export interface RouteRateLimit extends Omit<GateOptions<FastifyRequest>, 'limiter'> {
  /**
   * Answers a request that does not go on, in place of problem details: what it returns is sent. The status and the headers are
   * set.
   */
  onRefused?: ((request: FastifyRequest, reply: FastifyReply, refusal: Refusal) => unknown) | undefined
}

/** What the plugin is made of. */
export interface RateLimitOptions extends Omit<RouteRateLimit, 'rules'> {
  /** Asks the server. Its `fail`, `timeout`, `breaker` and `prefix` are those of the plugin. */
  limiter: RateLimiter
  /** What limits all requests. Without it only those to routes with `config.ratelimit` are limited. */
  rules?: RouteRateLimit['rules'] | undefined
  /** When requests are limited. `onRequest` by default; later ones see the body, and who is logged in. */
  hook?: 'onRequest' | 'preValidation' | 'preHandler' | undefined
}

const HOOKS = ['onRequest', 'preValidation', 'preHandler']

type Own = Omit<RateLimitOptions, 'hook'> & RegisterOptions

/**
 * Limits requests to all routes that are registered after it. A route may have rules of its own in `config.ratelimit`.
 *
 * ```js
 * const limiter = new RateLimiter(redis)
 * await app.register(ratelimit, { limiter, rules: [{ name: 'default', key: (request) => request.ip, limit: '100/m' }] })
 * ```
 *
 * A refusal is a 429 with `application/problem+json`, `Retry-After`, `RateLimit-Policy` and `RateLimit`. What is wrong is an
 * error of the request; at the start it is one of `ready` and `listen`. Leases are released and budgets settled when the
 * response is finished, and when the client hangs up.
 *
 * @throws ConfigurationError if a rule is wrong
 */
export async function ratelimit(app: FastifyInstance, options: RateLimitOptions): Promise<void> {
  const { hook = 'onRequest', ...rest } = options
  if (!HOOKS.includes(hook)) throw new ConfigurationError(`hook must be one of ${HOOKS.join(', ')}, not ${shown(hook)}`)
  const { rules, shed } = rest
  for (const name of ['spent', 'decisions']) if (!app.hasRequestDecorator(name)) app.decorateRequest(name, null)
  const all = rules === undefined && shed === undefined ? undefined : limitBy({ ...withoutOwn(rest), rules: rules ?? [] })
  // The names of the hooks have overloads of their own.
  if (all !== undefined)
    app.addHook(hook as 'onRequest', async (request, reply) =>
      request.routeOptions?.config?.ratelimit === false ? undefined : all(request, reply),
    )
  app.addHook('onRoute', (route) => {
    const own = route.config?.ratelimit
    if (own === undefined || own === false) return
    route[hook as 'onRequest'] = [limitBy({ ...own, limiter: rest.limiter }), ...[route[hook as 'onRequest'] ?? []].flat()]
  })
  app.addHook('onReady', async () => void (await rest.limiter.ready()))
}

type Limited = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply | undefined>

function limitBy(options: RouteRateLimit & GateOptions<FastifyRequest>): Limited {
  const gate = new Gate(options)
  const { onRefused } = options
  return async (request, reply) => {
    const what = { websocket: isHandshake(request), preflight: isPreflight(request.method, request.headers[ASKS]) }
    const passage = await entered(reply.raw, gate.enter(request, request.spent, stackOf(request), what))
    if (passage === undefined) return reply.hijack()
    const { refusal, headers, spent, decisions } = passage
    Object.assign(request, { spent, decisions })
    const isOwn = refusal !== undefined && onRefused !== undefined
    reply.headers(gate.exposed(isOwn ? refusal.headers : headers, reply.getHeader(EXPOSE)))
    if (refusal === undefined) return
    reply.code(refusal.status)
    if (!isOwn) return reply.send(refusal.body)
    const body = await onRefused(request, reply, refusal)
    return reply.sent ? reply : reply.send(body)
  }
}

// What @fastify/websocket says, or the server if that plugin was registered later.
function isHandshake({ ws, raw }: { ws?: boolean | null; raw: object }): boolean {
  return ws ?? (raw as { upgrade?: boolean }).upgrade ?? false
}

/** Without the options of `register` itself. */
function withoutOwn(options: Own): Omit<RateLimitOptions, 'hook'> {
  const { prefix: _prefix, logLevel: _logLevel, logSerializers: _logSerializers, ...own } = options
  return own
}

// What the package fastify-plugin does: the hooks are for the application, and not for a part of it.
Object.assign(ratelimit, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'redis-ratelimit',
  [Symbol.for('plugin-meta')]: { name: 'redis-ratelimit', fastify: '>=4' },
})
