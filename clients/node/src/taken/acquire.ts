/**
 * Takes a lease, or undoes what an attempt may have taken.
 *
 * @module
 */

import { randomUUID } from 'node:crypto'
import { checkFlag } from '../call/arguments.js'
import { checkedWait, costWord, type LeaseOptions } from '../call/options.js'
import type { Core } from '../core.js'
import { Decision } from '../decide/decision.js'
import { Refused, Unavailable } from '../errors.js'
import { Lease } from './lease.js'
import { durationWord, integerWord } from '../call/values.js'
import { span } from '../call/settings.js'
import type { Questions } from '../decide/asking.js'
import * as replies from '../decide/replies.js'
import { blocked } from '../wire/waits.js'

/** Takes a lease. Throws if it is refused, and without an answer if the limiter fails closed. */
export async function acquire(core: Core, questions: Questions, key: string, options: LeaseOptions): Promise<Lease> {
  const { renew = true, reserved, signal } = options
  checkFlag('renew', renew)
  checkFlag('critical', options.critical)
  signal?.throwIfAborted()
  core.throwIfClosed()
  const id = randomUUID()
  const ttl = span('ttl', options.ttl)
  const call = core.call('RL.CONCURRENT').key(key)
  call.value(integerWord('capacity', options.capacity, 1))
  call.value(durationWord('ttl', options.ttl, 1))
  call.value(id)
  call.option('RESERVED', reserved === undefined ? undefined : integerWord('reserved', reserved, 0))
  call.flag('CRITICAL', options.critical)
  call.option('COST', costWord(options, 1))
  call.wait(checkedWait(options))
  const asked = performance.now()
  const undo = () => void core.release([key], id, { within: blocked(call) + ttl, certain: false })
  let decision: Decision
  try {
    decision = await questions.decide({
      call,
      key,
      read: (reply) => replies.decision(reply),
      otherwise: (integers, error) => new Decision(integers, undefined, error),
      signal,
    })
  } catch (error) {
    // Given up, or its wait was ended by `close`. It may be granted all the same.
    if (signal?.aborted || core.isClosed) undo()
    throw error
  }
  if (decision.answered && !decision.allowed) throw new Refused(decision)
  const { error } = decision
  // The work does not count on it, so it is released at once.
  if (error instanceof Unavailable && error.maybeSent) undo()
  if (error !== undefined && !decision.allowed) throw error
  // A lease begins when it is granted. If that was after a wait, it is not known when.
  const since = call.block === undefined ? asked : performance.now()
  const lease = new Lease(core, key, id, decision, { ttl, since, renew })
  if (core.isClosed) {
    await lease.release()
    core.throwIfClosed()
  }
  return lease
}
