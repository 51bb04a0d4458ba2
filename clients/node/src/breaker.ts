/**
 * A circuit breaker: while the server does not answer, it is not asked.
 *
 * ```text
 * closed   calls go to the server            n failures in a row: open
 * open     calls are answered without it     after the cooldown: half open
 * half open   one call tries, the others are answered without it     success: closed; failure: open
 * ```
 *
 * @module
 */

/** What a breaker did with a call's outcome. */
export type Change = 'opened' | 'reopened' | 'closed' | undefined

/** Counts failures in a row. Times are in ms. */
export class Breaker {
  #failures = 0
  #openUntil: number | undefined
  #isTrying = false

  /**
   * @param most - the number of failures in a row that opens it
   * @param cooldown - how long it stays open
   */
  constructor(
    private readonly most: number,
    private readonly cooldown: number,
  ) {}

  /** Whether the server may be asked. A caller that may must tell the outcome by `succeeded`, `failed` or `unknown`. */
  admits(now: number): boolean {
    if (this.#openUntil === undefined) return true
    if (this.#isTrying || now < this.#openUntil) return false
    this.#isTrying = true
    return true
  }

  /** Whether calls are answered without the server. Unlike `admits` it asks for nothing. */
  isOpen(now: number): boolean {
    return this.#openUntil !== undefined && now < this.#openUntil
  }

  succeeded(): Change {
    const wasOpen = this.#openUntil !== undefined
    this.#failures = 0
    this.#openUntil = undefined
    this.#isTrying = false
    return wasOpen ? 'closed' : undefined
  }

  failed(now: number): Change {
    this.#failures += 1
    const wasOpen = this.#openUntil !== undefined
    // A call from before it opened says nothing new.
    if (wasOpen && !this.#isTrying) return undefined
    if (!wasOpen && this.#failures < this.most) return undefined
    this.#openUntil = now + this.cooldown
    this.#isTrying = false
    return wasOpen ? 'reopened' : 'opened'
  }

  /** The caller gave up before there was an outcome. So the next one tries. */
  unknown(): void {
    this.#isTrying = false
  }
}
