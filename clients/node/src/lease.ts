/// <reference lib="esnext.disposable" preserve="true" />

/**
 * Leases: at most n in progress at a time. A lease is renewed while it is held, and released on every path.
 *
 * A call that timed out may still be executed later, even after a release that was sent behind it. So after an acquire
 * without an answer the release is repeated until the server says that it released something, or the ttl has passed:
 *
 * ```text
 *    0 ms   RL.CONCURRENT pool 5 30s a1     no answer within 100 ms; the server is slow
 *  100 ms   fail open: the work begins, without a certain lease
 *  150 ms   the work is done; RL.RELEASE pool a1     no answer
 *  900 ms   the server goes on: it takes the lease a1
 * 1000 ms   RL.RELEASE pool a1     1: done
 * ```
 *
 * @module
 */

import type { Core } from './core.js'
import type { Decision } from './decision.js'
import { CallError, Unavailable } from './errors.js'

/** A lease that was granted, or work that was let through without an answer. */
export class Lease {
  /** What the server replied. */
  readonly decision: Decision
  readonly #core: Core
  readonly #ttl: number
  #isHeld: boolean
  #isLost = false
  #isCertain: boolean
  #endsAt: number
  #timer: NodeJS.Timeout | undefined
  #released: Promise<void> | undefined

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
    times: { ttl: number; since: number; renew: boolean; maybeTaken: boolean },
  ) {
    this.#core = core
    this.decision = decision
    this.#ttl = times.ttl
    this.#isHeld = decision.answered
    this.#isCertain = decision.answered || !times.maybeTaken
    this.#endsAt = times.since + times.ttl
    if (times.renew && (decision.answered || times.maybeTaken)) this.#renewLater()
  }

  /** Whether the lease is held for certain. It is not if the server did not answer, or if the lease is lost. */
  get held(): boolean {
    return this.#isHeld && !this.#isLost
  }

  /** Whether the lease ended before the work: a renewal found nothing, or none got through for a whole ttl. */
  get lost(): boolean {
    return this.#isLost
  }

  /** Extends the lease to a whole ttl from now. Returns whether it is still held. */
  async renew(): Promise<boolean> {
    const since = performance.now()
    const isThere = await this.#core.commands.renew(this.key, this.#ttl, this.id)
    if (this.#released !== undefined) return false
    if (isThere) {
      this.#isHeld = this.#isCertain = true
      this.#endsAt = since + this.#ttl
    } else if (this.#isHeld) {
      this.#lose('it is no longer on the server')
    }
    return this.held
  }

  /**
   * Ends the lease. Waits at most for the limiter's time-out, and never throws: a release without an answer is repeated in
   * the background.
   */
  release(): Promise<void> {
    clearTimeout(this.#timer)
    this.#released ??= this.#release()
    return this.#released
  }

  /** The same as {@link release}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }

  async #release(): Promise<void> {
    const nothingTaken = !this.#isHeld && this.#isCertain
    if (nothingTaken || this.#isLost) return
    await this.#core.release([this.key], this.id, { within: this.#endsAt - performance.now(), certain: this.#isCertain })
  }

  // A third of the ttl leaves two more attempts.
  #renewLater(): void {
    this.#timer = setTimeout(() => void this.#renewNow(), this.#ttl / 3)
    this.#timer.unref()
  }

  async #renewNow(): Promise<void> {
    try {
      await this.renew()
    } catch (error) {
      const isWrong = !(error instanceof Unavailable)
      this.#core.channel.log.warn('renewal', `a lease of '${this.key}' is not renewed: ${(error as Error).message}`)
      if (this.#isHeld && (isWrong || performance.now() >= this.#endsAt)) this.#lose('it was not renewed in time')
      if (error instanceof CallError) return
    }
    if (!this.#isLost && this.#released === undefined) this.#renewLater()
  }

  #lose(why: string): void {
    this.#isLost = true
    this.#core.channel.counters.leasesLost += 1
    this.#core.channel.log.warn('lost', `a lease of '${this.key}' is lost: ${why}`)
  }
}
