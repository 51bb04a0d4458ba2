/**
 * Why a call has no answer.
 *
 * @module
 */

import type { Call } from '../call/call.js'
import { Unavailable } from '../errors.js'

/** Here the server is not to blame, so its breaker does not count it. */
export class Blameless extends Unavailable {}

/** It was sent, and there is no reply in time. */
export function late(call: Call, ms: number): () => Unavailable {
  return () => new Unavailable(call.command, 'timeout', `no answer within ${ms} ms`, true)
}

/** It was not sent: there is no connection in time. */
export function unconnected(call: Call, ms: number): () => Unavailable {
  return () => unsent(call, 'timeout', `no connection within ${ms} ms`)
}

/** It was not sent: too many others were. */
export function crowded(call: Call, ms: number): () => Blameless {
  return () => new Blameless(call.command, 'timeout', `not sent within ${ms} ms, for there are too many calls at once`, false)
}

/** It was not sent: the breaker is open. */
export function leftAlone(call: Call, name: string): Unavailable {
  return new Blameless(call.command, 'breaker', `${name} did not answer before, and is not asked`, false)
}

/** It was not sent. */
export function unsent(call: Call, kind: string, text: string, cause?: unknown): Unavailable {
  return new Unavailable(call.command, kind, text, false, { cause })
}

/** The same, if the server is not to blame. */
export function blameless({ command, kind, message, maybeSent, cause }: Unavailable): Blameless {
  return new Blameless(command, kind, text({ command, message }), maybeSent, { cause })
}

/** The text of such an error without the command, which stands before it. */
export function text({ command, message }: Pick<Unavailable, 'command' | 'message'>): string {
  return message.slice(command.length + 2)
}
