/** Middleware for Express 4 and 5, and for handshakes of WebSockets on any server of `node:http`. */

import { STATUS_CODES, type IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { checkFunction } from '../call/arguments.js'
import type { Fields } from '../decide/headers.js'
import { RateLimitError } from '../errors.js'
import { ASKS, EXPOSE, isPreflight } from '../gate/cors.js'
import { entered } from '../gate/over.js'
import type { Decision } from '../decide/decision.js'
import { Gate, type GateOptions, type Passage, type Refusal, type Spent } from '../gate/gate.js'
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
  // The package express-ws sends sockets that are open through the application, with a response that never ends.
  const websocket = 'ws' in req
  const what = { websocket, preflight: isPreflight(req.method, req.headers[ASKS]) }
  const passage = await entered(websocket ? req.socket : res, gate.enter(req, req.spent, stackOf(req), what))
  if (passage === undefined) return
  const { refusal, headers, spent, decisions } = passage
  req.spent = spent
  req.decisions = decisions
  // Something before has answered already, such as a middleware with a time-out. Headers would be an exception now.
  if (res.headersSent) return next(refusal && new RateLimitError('the request is refused, but its response has begun'))
  const isOwn = refusal !== undefined && onRefused !== undefined
  const fields = gate.exposed(isOwn ? refusal.headers : headers, res.getHeader(EXPOSE))
  for (const [name, value] of Object.entries(fields)) res.setHeader(name, value)
  if (refusal) res.status(refusal.status)
  if (isOwn) await onRefused(req, res, refusal, next)
  else if (refusal) res.end(refusal.body)
  else next()
}

/** What {@link upgrade} is made of. The rules get the request of the handshake, which Express has not seen. */
export interface UpgradeOptions extends GateOptions<IncomingMessage> {
  /** Is told what is wrong, such as a rule. The client gets a 500, or is disconnected by an error of the listener. By default it is logged. */
  onError?: ((error: unknown, request: IncomingMessage) => void) | undefined
}

/** Answers a handshake that is admitted. `passage` has its headers and decisions, and the listener counts in its `spent`. */
export type UpgradeListener = (request: IncomingMessage, socket: Duplex, head: Buffer, passage: Passage) => unknown

/**
 * Limits handshakes of WebSockets. A server of Node.js sends them past Express, as the event `upgrade`.
 *
 * ```js
 * const rules = [{ name: 'sockets', key: clientAddress, limit: new Concurrent(5, '1m') }]
 * server.on('upgrade', upgrade({ limiter, rules }, (request, socket, head) => wss.handleUpgrade(request, socket, head, serve)))
 * ```
 *
 * Express has not seen the request, so behind a proxy `clientAddress` is the proxy's whatever `trust proxy` says. Pass it the
 * address that the proxy adds: `clientAddress(request.headers['x-forwarded-for']?.split(',').at(-1) ?? request)`.
 *
 * A refusal is a plain response, such as a 429 with the headers and the body of {@link ratelimit}. Leases are released and
 * budgets settled when the socket closes.
 *
 * @throws ConfigurationError if a rule is wrong
 */
export function upgrade({ onError, ...options }: UpgradeOptions, listener: UpgradeListener): (request: IncomingMessage, socket: Duplex, head: Buffer) => void {
  const gate = new Gate(options)
  checkFunction('listener', listener)
  if (onError !== undefined) checkFunction('onError', onError)
  const { log } = options.limiter.connected.core
  return (request, socket, head) => {
    // Nobody else listens yet, and a client that hangs up is no crash.
    socket.on('error', () => undefined)
    shake(gate, listener, request, socket, head).catch((error: unknown) => {
      answer(socket, 500)
      if (onError === undefined) log.warn('handshake', `a handshake failed: ${String(error)}`)
      else onError(error, request)
    })
  }
}

async function shake(gate: Gate<IncomingMessage>, listener: UpgradeListener, request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
  const passage = await entered(socket, gate.enter(request, undefined, stackOf(request), { websocket: true }))
  if (passage === undefined) return
  const { refusal, headers } = passage
  if (refusal) return answer(socket, refusal.status, headers, refusal.body)
  try {
    await listener(request, socket, head, passage)
  } catch (error) {
    // It may have begun to answer.
    socket.destroy()
    throw error
  }
}

function answer(socket: Duplex, status: number, headers: Readonly<Fields> = {}, body = ''): void {
  const fields = Object.entries({ ...headers, Connection: 'close', 'Content-Length': Buffer.byteLength(body) })
  // The server keeps a socket open that only the client has ended.
  socket.once('finish', () => socket.destroy())
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`)
}
