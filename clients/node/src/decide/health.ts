/** What a limiter knows of a server: whether it answers. */

import type { Call } from '../call/call.js'
import type { Settings } from '../call/settings.js'
import { CallError, type Unavailable } from '../errors.js'
import { Breaker, type Change, type Ticket } from './breaker.js'
import type { Core } from './core.js'
import { counts, isAnswer, leftAlone } from './failure.js'

// How long replicas are left alone after one did not answer, in ms.
const REST = 1000

/** A server, or the replicas of one as a whole. Times are in ms. */
export class Health {
  /** The number of replies until now. */
  replies = 0
  readonly #breaker: Breaker | undefined

  /** @param isPrimary - if a replica does not answer, its primary is asked, and nothing is logged */
  constructor(
    readonly name: string,
    readonly isPrimary: boolean,
    private readonly breaker: Settings['breaker'],
    private readonly core: Core,
  ) {
    if (!isPrimary) this.#breaker = new Breaker(1, REST)
    else if (breaker !== null) this.#breaker = new Breaker(breaker.failures, breaker.cooldown)
  }

  /** Returns the ticket of a call that may be sent. Throws if the server is left alone. */
  admit(call: Call, now: number): Ticket {
    const ticket = this.#breaker === undefined ? 0 : this.#breaker.admits(now)
    if (ticket === undefined) throw leftAlone(call.command, this.name)
    return ticket
  }

  /** Throws for a call that was admitted, if meanwhile it is known that nobody answers. */
  check(call: Call, now: number): void {
    if (this.isOpen(now)) throw leftAlone(call.command, this.name)
  }

  /** Whether calls are answered without the server for now. */
  isOpen(now: number): boolean {
    return this.#breaker?.isOpen(now) ?? false
  }

  /** It answered, if only that a call is wrong. */
  answered(): void {
    this.replies += 1
    const change = this.#breaker?.succeeded()
    if (change === 'closed' && this.isPrimary) this.core.log.warn(`closed ${this.name}`, `breaker closed: ${this.name} answers again`)
  }

  /** The caller of this ticket gave up. */
  unknown(ticket: Ticket): void {
    this.#breaker?.unknown(ticket)
  }

  /** The call of this ticket failed. `isLost`: its connection ended. Returns what the breaker did. */
  failed(ticket: Ticket, error: Unavailable | CallError, now: number, isLost: boolean): Change {
    if (error instanceof CallError || isAnswer(error)) {
      this.answered()
      return undefined
    }
    if (!counts(error)) {
      this.unknown(ticket)
      return undefined
    }
    const change = this.#breaker?.failed(ticket, now, isLost)
    if (change === 'opened' && this.isPrimary) {
      this.core.counters.breakerOpened += 1
      const line = `breaker opened: ${this.name} did not answer ${this.breaker?.failures} calls in a row: ${error.reason}`
      this.core.log.warn(`opened ${this.name}`, line)
    }
    return change
  }
}
