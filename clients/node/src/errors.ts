/**
 * The errors of the package.
 *
 * @module
 */

import type { Decision } from './decide/decision.js'

/** The base of all errors that this package throws. */
export class RateLimitError extends Error {
  override name = 'RateLimitError'
}

/** A limit, a rate, a duration or an option is wrong. It is thrown before anything is asked. */
export class ConfigurationError extends RateLimitError {
  override name = 'ConfigurationError'
}

/** The server rejected a call, such as `WRONGTYPE`, `NOPERM` or an unknown command. Nothing was decided. */
export class CallError extends RateLimitError {
  override name = 'CallError'
  /** The first word of the error reply, such as `ERR` or `WRONGTYPE`. */
  readonly code: string

  /**
   * @param command - the command, such as `RL.GCRA`
   * @param reply - the text of the error reply
   */
  constructor(
    readonly command: string,
    readonly reply: string,
    options?: ErrorOptions,
  ) {
    super(`${command}: ${reply}`, options)
    this.code = reply.split(' ', 1)[0] ?? ''
  }
}

/** The server did not answer: no connection, too late, or for the moment it cannot. */
export class Unavailable extends RateLimitError {
  override name = 'Unavailable'

  /**
   * @param command - the command, such as `RL.GCRA`
   * @param kind - what happened, in a word, such as `timeout` or `LOADING`
   * @param maybeSent - whether the server may still execute the call
   */
  constructor(
    readonly command: string,
    readonly kind: string,
    message: string,
    readonly maybeSent: boolean,
    options?: ErrorOptions,
  ) {
    super(`${command}: ${message}`, options)
  }
}

/** A lease or a hold was refused. */
export class Refused extends RateLimitError {
  override name = 'Refused'

  /**
   * @param decision - the refusal, with `retryAfter`
   */
  constructor(readonly decision: Decision) {
    super(decision.retryAfter === null ? 'refused, and will never be admitted' : `refused for ${decision.retryAfter} ms`)
  }
}

/** A call of a limiter that is closed, or that `close` ended. */
export class Closed extends RateLimitError {
  constructor(options?: ErrorOptions) {
    super('the limiter is closed', options)
  }
}

// The server is there, and cannot decide for the moment.
const PASSING =
  /^(LOADING|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|MOVED|ASK|OOM|READONLY|MISCONF|BUSY|NOREPLICAS|UNBLOCKED)\b|max number of clients/
// The keys are about to move to another node. The server is well.
const MOVING = new Set(['TRYAGAIN', 'MOVED', 'ASK'])
// An error reply begins with a word in capitals. Errors of clients and of sockets do not.
const REPLY = /^[A-Z][A-Z0-9]+ \S/
// What ioredis puts before an error reply.
const BEFORE = /^(Ready check failed: |Too many Cluster redirections\. Last error: (\w+: )?)/
const NOT_SENT = /offline|isn't writeable|isn't ready|The client is closed|ECONNREFUSED|ENOTFOUND|EAI_AGAIN/i

/** Makes the error of a client that of this package: {@link Unavailable} or {@link CallError}. */
export function failure(command: string, error: unknown): Unavailable | CallError {
  if (error instanceof Unavailable || error instanceof CallError) return error
  const text = textOf(error)
  const cause = { cause: withoutCommand(error) }
  if (PASSING.test(text)) return new Unavailable(command, text.split(' ', 1)[0] ?? '', text, false, cause)
  if (isReply(error, text)) return new CallError(command, text, cause)
  return new Unavailable(command, 'connection', text || 'no connection', !isUnsent(error, text), cause)
}

/** Whether a call failed because its keys are about to move to another node of the cluster. */
export function isMoving(error: unknown): error is Unavailable {
  return error instanceof Unavailable && MOVING.has(error.kind)
}

// The error for a host name with several addresses has no text of its own.
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof AggregateError && error.message === '') return error.errors.map(textOf).join('; ')
  return error.message.replace(BEFORE, '')
}

// ioredis keeps the command with its error, and so the password with that of AUTH.
function withoutCommand(error: unknown): unknown {
  if (!(error instanceof Error) || !('command' in error || 'lastNodeError' in error)) return error
  const clean = new Error(error.message)
  clean.name = error.name
  if (error.stack !== undefined) clean.stack = error.stack
  return clean
}

/** Whether a client's error is an error reply of the server. */
function isReply(error: unknown, text: string): boolean {
  if (!(error instanceof Error)) return false
  return error.name === 'ReplyError' || error.constructor.name.endsWith('ErrorReply') || REPLY.test(text)
}

// node-redis' TimeoutError is that of a command which was not yet written.
function isUnsent(error: unknown, text: string): boolean {
  if (error instanceof AggregateError) return error.errors.every((one) => isUnsent(one, textOf(one)))
  return NOT_SENT.test(text) || (error instanceof Error && error.constructor.name === 'TimeoutError')
}
