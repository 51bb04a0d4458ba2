/**
 * A circuit breaker: while the server does not answer, it is not asked.
 *
 * ```text
 * closed   calls go to the server            n failures in a row: open
 * open     calls are answered without it     after the cooldown: half open
 * half open   one call tries, the others are answered without it     success: closed; failure: open
 * ```
 *
 * A call may end long after it was admitted, when the breaker has changed. So each call has a ticket, and a failure counts
 * only in the period of its ticket:
 *
 * ```text
 *    0 ms   closed      a and b are sent with ticket 1
 *  100 ms   open        a fails; from now on the ticket is 2
 * 1100 ms   half open   c tries with ticket 2, and no other call is sent
 * 1101 ms   half open   b fails with ticket 1: c still tries
 * ```
 *
 * A lost connection also begins a period. So it counts once, however many calls were under way on it. So does a reply that the
 * server can decide nothing, such as READONLY: the calls after it get a new connection.
 */

/** The period in which a call was admitted. A new one begins when the breaker opens or closes, and with a lost connection. */
export type Ticket = number

/** What a breaker did with a call's outcome. */
export type Change = 'opened' | 'reopened' | 'closed' | undefined

/** Counts failures in a row. Times are in ms. */
export class Breaker {
  #failures = 0
  #openUntil: number | undefined
  #isTrying = false
  #ticket: Ticket = 1

  /**
   * @param most - the number of failures in a row that opens it
   * @param cooldown - how long it stays open
   */
  constructor(private readonly most: number, private readonly cooldown: number) {}

  /**
   * Returns a ticket if the server may be asked. Its caller must report the outcome by `succeeded`, `failed` or `unknown`.
   */
  admits(now: number): Ticket | undefined {
    if (this.#openUntil === undefined) return this.#ticket
    if (this.#isTrying || now < this.#openUntil) return undefined
    this.#isTrying = true
    return this.#ticket
  }

  /** Whether calls are answered without the server. Unlike `admits` it asks for nothing. */
  isOpen(now: number): boolean {
    return this.#openUntil !== undefined && now < this.#openUntil
  }

  /** The server answered. That closes the breaker, whenever the call was admitted. */
  succeeded(): Change {
    this.#failures = 0
    if (this.#openUntil === undefined) return undefined
    this.#openUntil = undefined
    this.#isTrying = false
    this.#ticket += 1
    return 'closed'
  }

  /** The server did not answer the call of this ticket. `isLost`: its connection ended. */
  failed(ticket: Ticket, now: number, isLost = false): Change {
    if (ticket !== this.#ticket) return undefined
    this.#failures += 1
    const wasOpen = this.#openUntil !== undefined
    const opens = wasOpen || this.#failures >= this.most
    if (opens || isLost) this.#ticket += 1
    if (!opens) return undefined
    this.#openUntil = now + this.cooldown
    this.#isTrying = false
    return wasOpen ? 'reopened' : 'opened'
  }

  /** The caller gave up before there was an outcome. If it tried, the next one tries. */
  unknown(ticket: Ticket): void {
    if (ticket === this.#ticket) this.#isTrying = false
  }
}
