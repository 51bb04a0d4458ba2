/// <reference lib="esnext.disposable" preserve="true" />

/**
 * Leases: at most n pieces of work at a time. A lease is renewed while it is held, and released on every path.
 *
 * A call that timed out may still be executed later, even after a release that was sent behind it. So what an acquire
 * without an answer may have taken is released at once, and the release is repeated until the server says that it released
 * something, or the ttl has passed:
 *
 * ```text
 *    0 ms   RL.CONCURRENT pool 5 30s a1     no answer within 100 ms; the server is slow
 *  100 ms   fail open: the work begins without a lease; RL.RELEASE pool a1     no answer
 *  900 ms   the server goes on: it takes the lease a1
 * 1000 ms   RL.RELEASE pool a1     1: done
 * ```
 *
 * @module
 */

import type { Core } from '../core.js'
import type { Decision } from '../decide/decision.js'
import { Unavailable } from '../errors.js'
import { shownKey } from '../decide/log.js'
import type { Taken } from './taken.js'

/** A lease that was granted, or work that was let through without an answer. */
export class Lease {
  /** What the server replied. */
  readonly decision: Decision
  readonly #core: Core
  readonly #ttl: number
  #isLost = false
  #endsAt: number
  #timer: NodeJS.Timeout | undefined
  #released: Promise<void> | undefined
  readonly #taken: Taken

  /**
   * @internal
   * @param key - the key, without prefixes
   * @param id - the id of the lease
   */
  constructor(
    core: Core,
    readonly key: string,
    readonly id: string,
    decision: Decision,
    /** @internal */
    times: { ttl: number; since: number; renew: boolean },
  ) {
    this.#core = core
    this.decision = decision
    this.#ttl = times.ttl
    this.#endsAt = times.since + times.ttl
    this.#taken = { until: times.renew ? Infinity : this.#endsAt, end: () => this.release() }
    if (!decision.answered) return
    core.taken.add(this.#taken)
    if (times.renew) this.#renewAfter(this.#ttl / 3)
  }

  /** Whether the lease is held for certain: the server said so, and it was neither lost nor released since. */
  get held(): boolean {
    const isOver = this.#isLost || this.#released !== undefined || performance.now() >= this.#endsAt
    return this.decision.answered && !isOver
  }

  /** Whether the lease ended before the work: a renewal found nothing, or none got through for a whole ttl. */
  get lost(): boolean {
    return this.#isLost
  }

  /** Extends the lease to a whole ttl from now. Returns whether it is still held. */
  async renew(): Promise<boolean> {
    if (!this.decision.answered || this.#released !== undefined) return false
    const since = performance.now()
    const isThere = await this.#core.commands.renew(this.key, `${this.#ttl}ms`, this.id)
    if (this.#released !== undefined) return false
    if (isThere) this.#endsAt = since + this.#ttl
    else this.#lose('it is no longer on the server')
    return this.held
  }

  /**
   * Ends the lease, also one that is lost: the server may have it still. Waits at most for the limiter's time-out, and never
   * throws: a release without an answer is repeated in the background.
   */
  release(): Promise<void> {
    this.#released ??= this.#release()
    return this.#released
  }

  /** The same as {@link release}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }

  async #release(): Promise<void> {
    clearTimeout(this.#timer)
    // What may have been taken without an answer is being released since then.
    if (!this.decision.answered) return
    this.#core.taken.delete(this.#taken)
    // A renewal without an answer may still be executed, and then the lease lasts for a ttl from then.
    await this.#core.release([this.key], this.id, { within: this.#ttl, certain: true })
  }

  // A third of the ttl leaves two more attempts.
  #renewAfter(delay: number): void {
    this.#timer = setTimeout(() => void this.#renewNow(), delay)
    this.#timer.unref()
  }

  async #renewNow(): Promise<void> {
    let delay = this.#ttl / 3
    try {
      await this.renew()
    } catch (error) {
      if (this.#released !== undefined) return
      this.#core.channel.log.warn('renewal', `a lease is not renewed: ${(error as Error).message}${shownKey(this.key)}`)
      // It would be rejected again.
      if (!(error instanceof Unavailable) || performance.now() >= this.#endsAt) this.#lose('it was not renewed in time')
      delay /= 3
    }
    if (!this.#isLost && this.#released === undefined) this.#renewAfter(delay)
  }

  #lose(why: string): void {
    if (this.#isLost) return
    this.#isLost = true
    this.#core.channel.counters.leasesLost += 1
    this.#core.channel.log.warn('lost', `a lease is lost: ${why}${shownKey(this.key)}`)
  }
}
