/** A plugin for Fastify 4 and 5. */

import type { FastifyInstance, FastifyReply, FastifyRequest, RegisterOptions } from 'fastify'
import { shown } from '../call/arguments.js'
import { ConfigurationError } from '../errors.js'
import { endWith } from '../gate/over.js'
import { Gate, type GateOptions, type Spent } from '../gate/gate.js'

export { UNLIMITED } from '../gate/gate.js'
export type { GateOptions, LimitRule, PerRequest, PolicyRule, Rule, Shed, Spent } from '../gate/gate.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** What the handler counts, by the names of the rules with an estimate. */
    spent: Spent
  }
}

/** What the plugin is made of. */
export interface RateLimitOptions extends GateOptions<FastifyRequest> {
  /** When requests are limited. `onRequest` by default; later ones see the body, and who is logged in. */
  hook?: 'onRequest' | 'preValidation' | 'preHandler' | undefined
}

const HOOKS = ['onRequest', 'preValidation', 'preHandler']

type Own = GateOptions<FastifyRequest> & RegisterOptions

/**
 * Limits requests to all routes that are registered after it.
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
  const gate = new Gate(withoutOwn(rest))
  if (!app.hasRequestDecorator('spent')) app.decorateRequest('spent', null as unknown as Spent)
  app.addHook('onReady', async () => void (await rest.limiter.ready()))
  const limit = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    const passage = await gate.enter(request, request.spent)
    await passage.turn()
    if (!endWith(reply.raw, passage)) return reply.hijack()
    const { refusal, headers, spent } = passage
    request.spent = spent
    reply.headers(headers)
    return refusal && reply.code(refusal.status).send(refusal.body)
  }
  // The names of the hooks have overloads of their own.
  app.addHook(hook as 'onRequest', limit)
}

/** Without the options of `register` itself. */
function withoutOwn(options: Own): GateOptions<FastifyRequest> {
  const { prefix: _prefix, logLevel: _logLevel, logSerializers: _logSerializers, ...own } = options
  return own
}

// What the package fastify-plugin does: the hooks are for the application, and not for a part of it.
Object.assign(ratelimit, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'redis-ratelimit',
  [Symbol.for('plugin-meta')]: { name: 'redis-ratelimit', fastify: '>=4' },
})
