/**
 * Middleware for Express 4 and 5.
 *
 * @module
 */

import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { RateLimitError } from '../errors.js'
import { endWith } from '../gate/response.js'
import { Gate, type GateOptions, type Pass, type Spent } from '../gate/gate.js'

export type { GateOptions, LimitRule, Pass, PerRequest, PolicyRule, Refusal, Rule, Shed, Spent } from '../gate/gate.js'

declare global {
  // Express has its request in a namespace, so that it can be extended.
  namespace Express {
    interface Request {
      /** What the handler counts, by the names of the rules with an estimate. */
      spent: Spent
    }
  }
}

/** The middleware, and a check of its rules for the start. */
export interface RateLimitHandler extends RequestHandler {
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
 * const limits = ratelimit({ limiter, rules: [{ name: 'default', key: (req) => req.get('x-api-key') ?? req.ip, limit: '100/m' }] })
 * await limits.ready()
 * app.use(limits)
 * ```
 *
 * A refusal is a 429 with `application/problem+json`, `Retry-After`, `RateLimit-Policy` and `RateLimit`. What is wrong goes
 * to `next` as an error. Leases are released and budgets settled when the response is finished, and when the client hangs
 * up.
 *
 * @throws ConfigurationError if a rule is wrong
 */
export function ratelimit(options: GateOptions<Request>): RateLimitHandler {
  const gate = new Gate(options)
  const handler: RequestHandler = (req, res, next) => {
    gate
      .enter(req, req.spent)
      .then((pass) => go(pass, req, res, next))
      .catch(next)
  }
  return Object.assign(handler, { ready: () => gate.ready() })
}

function go(pass: Pass, req: Request, res: Response, next: NextFunction): void {
  if (!endWith(res, pass)) return
  const { refusal, headers, spent } = pass
  req.spent = spent
  // Something before has answered already, such as a middleware with a time-out. Headers would be an exception now.
  if (res.headersSent) return next(refusal && new RateLimitError('the request is refused, but its response has begun'))
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value)
  if (refusal) res.status(refusal.status).end(refusal.body)
  else next()
}
