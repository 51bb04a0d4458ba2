/**
 * Endings: the releases of leases and the settlements of holds. An ending is repeated until it is certain.
 *
 * A call without an answer may still be executed, even after its ending. So the ending of what may have been taken is
 * repeated until it ended something, or the ttl has passed. A server that was silent for longer may have the call in its
 * socket, so the ending is also repeated for a while after its first reply. The ending of what was surely taken needs one
 * reply. That of a call which was given up needs two: with the first one, the server has read what was sent before.
 *
 * ```text
 *    0 ms   RL.CONCURRENT pool 5 30s a1     no reply within 100 ms; the server is slow
 *  100 ms   fail open: the work begins without a lease; RL.RELEASE pool a1     no reply
 *  900 ms   the server goes on: it takes the lease a1
 * 1000 ms   RL.RELEASE pool a1     1: done
 * ```
 */

import type { Call } from '../call/call.js'
import type { Log } from '../decide/log.js'
import * as replies from '../decide/replies.js'
import { CallError, RateLimitError, Unavailable } from '../errors.js'

/** What came of a call: its reply, or why there is none. */
export type Outcome = { readonly reply: unknown } | Unavailable | CallError

/** When an ending is certain. */
export interface EndingOptions {
  /** After this time the server ends it by itself, in ms. */
  ttl: number
  /** Whether it was surely taken. If not, the call that takes it may still be executed. */
  certain: boolean
  /** Whether its caller gave up. The server has then read all of the call when it answers a later one. */
  isGivenUp?: boolean
}

// Delays double from the first one: to the longest while there was no reply, and after one to that of a server which answers.
const FIRST_DELAY = 50
const LONGEST_DELAY = 1000
const LONGEST_DELAY_ANSWERED = 30_000
// How long an ending is repeated after the first reply at most, if its ttl has passed.
const AFTER_REPLY = 60_000
// How long an ending is repeated after its ttl to a server that does not answer at all.
const BEYOND = 600_000

/** A release or a settlement. Times are in ms. */
export class Ending {
  #until: number
  #isAnswered = false
  #delay = FIRST_DELAY

  constructor(readonly call: Call, private readonly options: EndingOptions, private readonly log: Log, now: number) {
    this.#until = now + options.ttl
  }

  /** After how long it is repeated, given what came of it. `undefined`: it is over. */
  after(outcome: Outcome, now: number): number | undefined {
    if (outcome instanceof CallError) {
      this.log.failed(this.call, 'not repeated', outcome)
      return undefined
    }
    if (outcome instanceof Unavailable) {
      if (now >= this.#until + BEYOND) {
        this.log.failed(this.call, 'given up', outcome)
        return undefined
      }
    } else if (this.#isDone(outcome.reply, now)) return undefined
    const delay = this.#delay
    this.#delay = Math.min(2 * delay, this.#isAnswered ? LONGEST_DELAY_ANSWERED : LONGEST_DELAY)
    return delay
  }

  #isDone(reply: unknown, now: number): boolean {
    const { ttl, certain, isGivenUp = false } = this.options
    if (certain || ended(this.call, reply)) return true
    if (this.#isAnswered) return isGivenUp || now >= this.#until
    this.#isAnswered = true
    this.#delay = FIRST_DELAY
    this.#until = Math.max(this.#until, now + Math.min(ttl, AFTER_REPLY))
    return now >= this.#until
  }
}

/** Whether a reply says that something was ended. One of another form says neither. */
function ended({ command }: Call, reply: unknown): boolean {
  try {
    if (command === 'RL.SETTLE') return replies.settled(reply).settled
    if (command === 'RL.MULTISETTLE') return (replies.multi(reply).settled ?? 0) > 0
    if (command === 'RL.ASKSETTLE') return (replies.askSettled(reply).settled ?? 0) > 0
    return replies.int(reply) > 0
  } catch (error) {
    if (error instanceof RateLimitError) return false
    throw error
  }
}
