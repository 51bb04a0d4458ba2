/**
 * What a process has taken of one key ahead, and when it takes more. There is no I/O and no clock here.
 *
 * The process fetches a batch by `PARTIAL` and spends it on calls. It forgets the rest when `hold` has passed since it sent the fetch.
 * A batch is three quarters of what is asked for in `hold`:
 *
 * ```text
 *  0 ms   fetch 45    600 calls a second, hold is 100 ms
 *  1 ms   45 arrive   they may be spent until 100 ms
 * 57 ms   11 left     a quarter, so the next batch is fetched
 * 58 ms   45 arrive   these may be spent until 157 ms
 * 75 ms   the first batch is spent
 * ```
 *
 * All processes together spend in any time t at most C + r * (t + hold), where C is the most at once and r the rate. What is
 * spent in [a, a + t] was granted in [a - hold, a + t], and the server grants at most C + r * (t + hold) in that time. The
 * argument needs only that nothing is spent later than `hold` after it was granted. So `hold` counts from sending, and all
 * other numbers here are for throughput alone.
 */

import type { SteadyRate } from '../call/steady.js'
import type { Counters } from '../decide/counters.js'
import { Decision } from '../decide/decision.js'
import { shareOf } from '../decide/insurance.js'
import { Unavailable } from '../errors.js'

/**
 * What a call does that has no answer from memory: `ask` the server for its whole cost, `wait` for the fetch that is under way,
 * or take of the `share` of its process, since the server does not answer.
 */
export type Way = 'ask' | 'wait' | 'share'

/** What was granted by one fetch. */
interface Batch {
  /** How much of it is not spent. */
  left: number
  /** When it is forgotten. */
  readonly ends: number
  /** The answer to each call that it admits. */
  readonly decision: Decision
}

// Demand is counted in slots: the current one, and the nine before.
const SLOT = 100
const SLOTS = 10
/** With less demand in a second a call asks directly: a batch would be forgotten before it is spent. */
export const RARE = 100
// For how many fetches a call waits. If one brings nothing, as with an error reply, or later than a hold, it asks directly.
const MOST_WAITS = 3
// How many calls may ask directly before others wait for a fetch instead. A direct call costs a process much more than one from
// memory. Without this bound a process without enough CPU time asks directly for each call, and never catches up.
const MOST_ASKING = 8
// For how many fetches a call waits because others ask directly.
const LONGEST_WAITS = 20
const NOTHING: Batch = { left: 0, ends: Infinity, decision: new Decision([1]).by('local') }

/** The batches of a key, in a process. Times are ms of a clock that never goes back. */
export class Store {
  /** How much is to be fetched now. Its reader sets it to 0. */
  wanted = 0
  /** Why the server did not answer, while the process is cut off. */
  missing: Unavailable | undefined
  readonly #counters: Counters
  readonly #most: number
  readonly #largest: number
  readonly #hold: number
  readonly #quarter: number
  #batches: Batch[] = []
  // The oldest batch of which something is left.
  #current = NOTHING
  #left = 0
  #ends = Infinity
  #low = 0
  #isFetching = false
  // Whether the last fetch brought something, and whether it came later than a hold.
  #hasBrought = false
  #isLate = false
  // How many calls ask directly.
  #asking = 0
  #nextFetch = -Infinity
  #refusedUntil = -Infinity
  #refusal = NOTHING.decision
  #demand = 0
  #slot = 0
  #slotEnds = -Infinity
  readonly #slots: number[] = new Array<number>(SLOTS - 1).fill(0)

  /**
   * @param rate - the rate of all processes
   * @param hold - for how long what was granted may be spent
   * @param processes - how many processes ask
   * @param counters - where it counts
   */
  constructor(rate: SteadyRate, hold: number, processes: number, counters: Counters) {
    this.#most = rate.most
    this.#largest = shareOf(rate, processes)
    this.#hold = hold
    this.#quarter = hold / 4
    this.#counters = counters
  }

  /** How much may be spent. */
  get left(): number {
    return this.#left
  }

  /** An answer for which nobody waits, or `ask`: the server must be asked, and nothing is counted. */
  tryTake(cost: number, now: number): Decision | 'ask' | 'share' {
    if (now >= this.#ends) this.#forget(now)
    if (now >= this.#slotEnds) this.#turn(now)
    if (cost <= this.#left) {
      this.#add(cost)
      return this.#spend(cost, now)
    }
    if (!this.#isKnown(cost, cost, now)) return 'ask'
    this.#add(cost)
    return this.#without(now)
  }

  /**
   * An answer from memory, or what the call does else.
   *
   * @param waits - for how many fetches it has waited
   */
  take(cost: number, now: number, waits: number): Decision | Way {
    if (now >= this.#ends) this.#forget(now)
    if (cost > this.#most) return this.#ask()
    if (waits === 0) {
      if (now >= this.#slotEnds) this.#turn(now)
      this.#add(cost)
    }
    if (cost <= this.#left) return this.#spend(cost, now)
    if (this.#isKnown(cost, 0, now)) return this.#without(now)
    const isRare = this.#demand < RARE || waits >= MOST_WAITS || (waits > 0 && this.#isLate)
    if (this.#left > 0 || (waits > 0 && !this.#hasBrought) || waits >= LONGEST_WAITS || (isRare && this.#asking < MOST_ASKING))
      return this.#ask()
    if (!this.#isFetching) {
      if (cost > this.#batch()) return this.#ask()
      this.#begin(now)
    }
    return 'wait'
  }

  #ask(): Way {
    this.#asking += 1
    return 'ask'
  }

  /** Takes back what a decision of a batch has admitted. It is forgotten with that batch. */
  giveBack(cost: number, decision: Decision, now: number): void {
    this.#forget(now)
    const batch = this.#batches.find((one) => one.decision === decision)
    if (batch === undefined) return
    batch.left += cost
    this.#left += cost
    this.#advance()
  }

  /** Notes the answer to a fetch of `asked` that was sent at some time. */
  fetched(decision: Decision, asked: number, sent: number, now: number): void {
    const { granted = 0, limit, remaining, resetAfter, limiter } = decision
    this.#counters.fetches += 1
    this.#counters.fetched += granted
    this.#low = Math.floor(granted / 4)
    const ends = sent + this.#hold
    this.#batches.push({ left: granted, ends, decision: new Decision([0, limit, remaining, 0, resetAfter], limiter).by('local') })
    this.#left += granted
    this.#ends = Math.min(this.#ends, ends)
    this.#advance()
    this.#forget(now)
    if (granted < asked) this.#refused(decision, now)
    this.ended()
    this.#hasBrought = granted > 0
    this.#isLate = now >= ends
  }

  /** Notes what came of a call that asked directly. Nothing: the server rejects it. */
  asked(decision: Decision | Unavailable | undefined, now: number): void {
    this.#asking -= 1
    if (decision === undefined) return
    this.missing = decision instanceof Unavailable ? decision : undefined
    if (decision instanceof Unavailable) return
    if (!decision.allowed && decision.remaining === 0 && decision.retryAfter !== null) this.#refused(decision, now)
  }

  /** Notes that no fetch is under way any more. */
  ended(missing?: Unavailable): void {
    this.#isFetching = false
    this.#hasBrought = false
    this.#isLate = false
    this.wanted = 0
    this.missing = missing
  }

  #add(cost: number): void {
    this.#slot += cost
    this.#demand += cost
  }

  #forget(now: number): void {
    while (now >= this.#ends) {
      const { left } = this.#batches.shift()!
      this.#counters.forgotten += left
      this.#left -= left
      this.#ends = this.#batches[0]?.ends ?? Infinity
      this.#advance()
    }
  }

  // Whether a call that finds too little is answered all the same, with this much more of demand.
  #isKnown(cost: number, more: number, now: number): boolean {
    if (cost > this.#most) return false
    return this.missing !== undefined || (now < this.#refusedUntil && this.#demand + more >= RARE)
  }

  #without(now: number): Decision | 'share' {
    if (this.missing === undefined) {
      this.#counters.asked += 1
      this.#counters.answeredLocally += 1
      this.#counters.refused += 1
      return this.#refusal
    }
    this.#fetch(now)
    return 'share'
  }

  #advance(): void {
    this.#current = this.#batches.find(({ left }) => left > 0) ?? NOTHING
  }

  /** Takes a cost that is there, of the oldest batch first. */
  #spend(cost: number, now: number): Decision {
    this.#counters.asked += 1
    this.#counters.answeredLocally += 1
    this.#counters.allowed += 1
    this.#left -= cost
    const { decision } = this.#current
    for (let due = cost; due > 0; ) {
      const part = Math.min(due, this.#current.left)
      this.#current.left -= part
      due -= part
      if (this.#current.left === 0) this.#advance()
    }
    if (this.#left <= this.#low && this.#demand >= RARE) this.#fetch(now)
    return decision
  }

  /** Says how much to fetch, unless a fetch is under way or was a short time ago. */
  #fetch(now: number): void {
    if (!this.#isFetching && now >= this.#nextFetch && now >= this.#refusedUntil) this.#begin(now)
  }

  #begin(now: number): void {
    this.#isFetching = true
    this.#nextFetch = now + this.#quarter
    this.wanted = this.#batch()
  }

  #batch(): number {
    return Math.min(Math.max(1, Math.floor((3 * this.#demand * this.#hold) / 4000)), this.#largest)
  }

  #refused({ limit, retryAfter, resetAfter, limiter }: Decision, now: number): void {
    this.#refusedUntil = now + this.#quarter
    const wait = Math.max(Math.ceil(this.#quarter), retryAfter ?? 0)
    this.#refusal = new Decision([1, limit, 0, wait, resetAfter], limiter).by('local')
  }

  /** Begins the slot of this time. */
  #turn(now: number): void {
    if (this.#slotEnds === -Infinity) {
      this.#slotEnds = now + SLOT
      return
    }
    const gone = Math.floor((now - this.#slotEnds) / SLOT) + 1
    for (let n = Math.min(gone, SLOTS); n > 0; n -= 1) {
      this.#slots.push(this.#slot)
      this.#demand -= this.#slots.shift()!
      this.#slot = 0
    }
    this.#slotEnds += gone * SLOT
  }
}
