/**
 * Refusals in memory: a call that was refused is not asked again before it can be admitted.
 *
 * @module
 */

interface Refusal<D> {
  decision: D
  since: number
  until: number
}

// A key is asked for few limits and costs.
const CALLS = 8

/** Refusals by key and call. Bounded: the key that was used longest ago goes first. Times are in ms. */
export class Refusals<D> {
  readonly #keys = new Map<string, Map<string, Refusal<D>>>()
  // When something was given back.
  readonly #forgotten = new Map<string, number>()

  /**
   * @param most - the most keys
   * @param longest - the longest time that a refusal is remembered
   */
  constructor(
    private readonly most: number,
    private readonly longest: number,
  ) {}

  /** The refusal of this call and its age, if it still holds. */
  find(key: string, call: string, now: number): { decision: D; age: number } | undefined {
    const calls = this.#keys.get(key)
    const refusal = calls?.get(call)
    if (calls === undefined || refusal === undefined) return undefined
    if (now >= refusal.until) {
      calls.delete(call)
      if (calls.size === 0) this.#keys.delete(key)
      return undefined
    }
    this.#keys.delete(key)
    this.#keys.set(key, calls)
    return { decision: refusal.decision, age: now - refusal.since }
  }

  /** Remembers a refusal for `retryAfter`, unless something was given back since it was `asked`. */
  add(key: string, call: string, decision: D, retryAfter: number, now: number, asked = now): void {
    if ((this.#forgotten.get(key) ?? -1) >= asked) return
    const calls = this.#keys.get(key) ?? new Map<string, Refusal<D>>()
    this.#keys.delete(key)
    if (calls.size >= CALLS) calls.clear()
    calls.set(call, { decision, since: now, until: now + Math.min(retryAfter, this.longest) })
    this.#keys.set(key, calls)
    const [oldest] = this.#keys.keys()
    if (this.#keys.size > this.most && oldest !== undefined) this.#keys.delete(oldest)
  }

  /** Forgets a key, to which something was given back. */
  forget(key: string, now: number): void {
    this.#keys.delete(key)
    this.#forgotten.delete(key)
    this.#forgotten.set(key, now)
    const [oldest] = this.#forgotten.keys()
    if (this.#forgotten.size > this.most && oldest !== undefined) this.#forgotten.delete(oldest)
  }

  /** The number of keys. */
  get size(): number {
    return this.#keys.size
  }
}
