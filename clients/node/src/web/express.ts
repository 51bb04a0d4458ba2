/** Middleware for Express 4 and 5. */

import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { RateLimitError } from '../errors.js'
import { endWith } from '../gate/over.js'
import type { Decision } from '../decide/decision.js'
import { Gate, type GateOptions, type Refusal, type Spent } from '../gate/gate.js'
import { stackOf } from '../gate/stack.js'

export { UNLIMITED } from '../gate/gate.js'
export type { GateOptions, HeaderStyle, LimitRule, PerRequest, PolicyRule, Refusal, Rule, Shed, Spent } from '../gate/gate.js'

declare global {
  // Express has its request in a namespace, so that it can be extended.
  namespace Express {
    interface Request {
      /** What the handler counts, by the names of the rules with an estimate. */
      spent: Spent
      /** The decisions by the names of the rules. There are none without an answer. */
      decisions: Readonly<Record<string, Decision>>
    }
  }
}

/** What the middleware is made of. */
export interface RateLimitOptions extends GateOptions<Request> {
  /** Answers a request that does not go on, in place of problem details. Its status and headers are set. */
  onRefused?: ((req: Request, res: Response, refusal: Refusal, next: NextFunction) => unknown) | undefined
}

/**
 * Limits requests.
 *
 * ```js
 * const limiter = new RateLimiter(redis)
 * app.use(ratelimit({ limiter, rules: [{ name: 'default', key: (req) => req.get('x-api-key') ?? req.ip, limit: '100/m' }] }))
 * await limiter.ready()
 * ```
 *
 * A refusal is a 429 with `application/problem+json`, `Retry-After`, `RateLimit-Policy` and `RateLimit`. What is wrong goes
 * to `next` as an error. Leases are released and budgets settled when the response is finished, and when the client hangs
 * up.
 *
 * @throws ConfigurationError if a rule is wrong
 */
export function ratelimit(options: RateLimitOptions): RequestHandler {
  const gate = new Gate(options)
  return (req, res, next) => void limit(gate, options, req, res, next).catch(next)
}

async function limit(gate: Gate<Request>, { onRefused }: RateLimitOptions, req: Request, res: Response, next: NextFunction): Promise<void> {
  const passage = await gate.enter(req, req.spent, stackOf(req))
  if (!endWith(res, passage) || !(await passage.turn())) return
  const { refusal, headers, spent, decisions } = passage
  req.spent = spent
  req.decisions = decisions
  // Something before has answered already, such as a middleware with a time-out. Headers would be an exception now.
  if (res.headersSent) return next(refusal && new RateLimitError('the request is refused, but its response has begun'))
  const isOwn = refusal !== undefined && onRefused !== undefined
  for (const [name, value] of Object.entries(isOwn ? refusal.headers : headers)) res.setHeader(name, value)
  if (refusal) res.status(refusal.status)
  if (isOwn) await onRefused(req, res, refusal, next)
  else if (refusal) res.end(refusal.body)
  else next()
}
