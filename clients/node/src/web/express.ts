/** Middleware for Express 4 and 5. */

import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { RateLimitError } from '../errors.js'
import { endWith } from '../gate/over.js'
import { Gate, type GateOptions, type Spent } from '../gate/gate.js'

export { UNLIMITED } from '../gate/gate.js'
export type { GateOptions, LimitRule, PerRequest, PolicyRule, Refusal, Rule, Shed, Spent } from '../gate/gate.js'

declare global {
  // Express has its request in a namespace, so that it can be extended.
  namespace Express {
    interface Request {
      /** What the handler counts, by the names of the rules with an estimate. */
      spent: Spent
    }
  }
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
export function ratelimit(options: GateOptions<Request>): RequestHandler {
  const gate = new Gate(options)
  return (req, res, next) => void limit(gate, req, res, next).catch(next)
}

async function limit(gate: Gate<Request>, req: Request, res: Response, next: NextFunction): Promise<void> {
  const passage = await gate.enter(req, req.spent)
  await passage.turn()
  if (!endWith(res, passage)) return
  const { refusal, headers, spent } = passage
  req.spent = spent
  // Something before has answered already, such as a middleware with a time-out. Headers would be an exception now.
  if (res.headersSent) return next(refusal && new RateLimitError('the request is refused, but its response has begun'))
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value)
  if (refusal) res.status(refusal.status).end(refusal.body)
  else next()
}
