/**
 * Which errors mean that there is no answer, which of them are the server's fault, and which mean that the call is wrong.
 */

import { CallError, Closed, Unavailable } from '../errors.js'

/** Why a call has no reply. */
export class NoReply extends Error {
  /** @param maybeSent - whether the server may still execute the call */
  constructor(readonly kind: string, reason: string, readonly maybeSent: boolean, options?: ErrorOptions) {
    super(reason, options)
  }
}

/** It was sent, there is no reply in time, and its connection was closed for that. */
export class Silence extends NoReply {}

/** No answer, though the server gives other ones. */
export class Uncounted extends Unavailable {}

/** It was sent, and there is no reply in time. */
export function late(ms: number): NoReply {
  return new NoReply('timeout', lateText(ms), true)
}

/** The same, of a call whose connection is closed. */
export function silent(ms: number): Silence {
  return new Silence('timeout', lateText(ms), true)
}

function lateText(ms: number): string {
  return `no reply within ${ms} ms`
}

/** It was not sent: there is no connection in time. */
export function unconnected(ms: number): NoReply {
  return new NoReply('connection', `no connection within ${ms} ms`, false)
}

/** It was not sent: too many others were. */
export function crowded(): NoReply {
  return new NoReply('crowded', 'too many calls at once', false)
}

/** It was not sent: the breaker is open. */
export function leftAlone(command: string, node: string): Unavailable {
  return new Unavailable(command, 'breaker', 'not asked, since it did not answer before', node, false)
}

// The server is there, and cannot decide for the moment. It says so in the first word of its reply.
const PASSING = /^(LOADING|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|MOVED|ASK|OOM|READONLY|MISCONF|BUSY|NOREPLICAS|UNBLOCKED|NOAUTH|WRONGPASS)\b/
// The keys are about to move to another node. The server is well.
const MOVING = new Set(['TRYAGAIN', 'MOVED', 'ASK'])
// Of those without an answer: which are not the server's fault.
const UNCOUNTED = new Set([...MOVING, 'CLUSTERDOWN', 'OOM', 'UNBLOCKED', 'maxclients', 'crowded', 'breaker', 'holds'])
// A bound of the server's, which callers reach that do not settle.
const TOO_MANY_HOLDS = /^ERR too many holds$/
// The credentials are wrong, or the module is missing. Neither is a mistake of the call.
const NO_MODULE = /^ERR unknown command '?RL\./i
const MISCONFIGURED = new Set(['NOAUTH', 'WRONGPASS', 'module'])
// An error reply begins with a word in capitals. Errors of clients and of sockets do not.
const REPLY = /^[A-Z][A-Z0-9]+ \S/
// What ioredis puts before an error reply.
const BEFORE = /^(Ready check failed: |Too many Cluster redirections\. Last error: (\w+: )?)/
const NOT_SENT = /offline|isn't writeable|isn't ready|The client is closed|ECONNREFUSED|ENOTFOUND|EAI_AGAIN/i
// What ioredis says of a call that was on its way. It hides the cause.
const LOST = /^Reached the max retries per request limit/

/** The error of an attempt to connect, as that of a call that was therefore not sent. */
export function unsent(error: unknown): unknown {
  const failed = failureOf('', '', error)
  if (failed instanceof CallError || !failed.maybeSent) return error
  return new NoReply(failed.kind, failed.reason, false, { cause: failed.cause })
}

/** Makes the error of a client that of this package. */
export function failureOf(command: string, node: string, error: unknown): Unavailable | CallError {
  if (error instanceof Unavailable || error instanceof CallError) return error
  if (error instanceof NoReply) return new Unavailable(command, error.kind, error.message, node, error.maybeSent, { cause: error.cause })
  const text = textOf(error)
  const cause = { cause: withoutCommand(error) }
  const kind = kindOf(text)
  if (kind !== undefined) return new Unavailable(command, kind, text, node, false, cause)
  if (isReply(error, text)) return new CallError(command, text, node, cause)
  return new Unavailable(command, 'connection', text || 'no connection', node, !isNotSent(error, text), cause)
}

/** What the text of an error reply says of a server that does not decide. `undefined`: nothing of the kind. */
function kindOf(text: string): string | undefined {
  if (/max number of clients/.test(text)) return 'maxclients'
  if (NO_MODULE.test(text)) return 'module'
  return TOO_MANY_HOLDS.test(text) ? 'holds' : PASSING.exec(text)?.[0]
}

/**
 * The same, explained by the last error of the connection: a client that is not connected does not say why. If the server
 * rejected the connection, the call is wrong.
 */
export function explained(command: string, node: string, error: unknown, lastError: unknown): Unavailable | CallError {
  const failed = failureOf(command, node, error)
  if (lastError === undefined || failed instanceof CallError || failed.kind !== 'connection' || failed instanceof Uncounted) return failed
  const why = failureOf(command, node, lastError)
  if (why instanceof CallError) return failed.maybeSent ? failed : why
  // A server that rejects this connection, such as for want of room, answers those that it has.
  const kind = failed.maybeSent ? failed.kind : why.kind
  return new Unavailable(command, kind, why.reason, node, failed.maybeSent, { cause: why.cause })
}

/** Whether the breaker of its server counts this failure. */
export function counts(error: Unavailable): boolean {
  return !(error instanceof Uncounted || UNCOUNTED.has(error.kind))
}

/** Whether a call has no answer because the credentials are wrong, or because the server lacks the module. */
export function isMisconfigured(error: unknown): boolean {
  return error instanceof Unavailable && MISCONFIGURED.has(error.kind)
}

/** Whether a call has no answer, and the server is well all the same. */
export function isAnswer(error: Unavailable): boolean {
  return isMisconfigured(error) || error.kind === 'holds'
}

/**
 * Whether another server may be the primary by now, so that a new connection may find it.
 *
 * @param moves - whether a client may hold on to a server that is gone
 */
export function isElsewhere(error: Unavailable | CallError, moves: boolean): boolean {
  return isUnable(error) || (error instanceof Unavailable && error.kind === 'connection' && counts(error) && moves)
}

/** Whether a server replied that it can decide nothing, such as a replica. Another one may have its address. */
export function isUnable(error: Unavailable | CallError): boolean {
  if (error instanceof CallError || !counts(error) || isMisconfigured(error)) return false
  return error.kind !== 'connection' && error.kind !== 'timeout'
}

/** Whether a connection ended while the call was under way. */
export function isLost(error: Unavailable | CallError): boolean {
  return error instanceof Unavailable && error.kind === 'connection' && error.maybeSent
}

/** Whether a call failed because its keys are about to move to another node of the cluster. */
export function isMoving(error: unknown): error is Unavailable {
  return error instanceof Unavailable && MOVING.has(error.kind)
}

/** Whether a call was not sent, since its connection was not there. */
export function isUnsent(error: Unavailable | CallError): boolean {
  return error instanceof Unavailable && error.kind === 'connection' && !error.maybeSent
}

/** Whether a call failed because its caller wants no answer any more. */
export function gaveUp(error: unknown, signal: AbortSignal | undefined): boolean {
  return error instanceof Closed || (signal?.aborted === true && error === signal.reason)
}

// The error for a host name with several addresses has no text of its own.
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof AggregateError && error.message === '') return error.errors.map(textOf).join('; ')
  return LOST.test(error.message) ? 'the connection was lost' : error.message.replace(BEFORE, '')
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
function isNotSent(error: unknown, text: string): boolean {
  if (error instanceof AggregateError) return error.errors.every((one) => isNotSent(one, textOf(one)))
  return NOT_SENT.test(text) || (error instanceof Error && error.constructor.name === 'TimeoutError')
}
