/** Which keys are strings for now. */

import { real } from '../runtime.js'

// As many as the library blocks in memory.
const MOST = 1000

/** Remembers keys until their strings expire, so that the next call takes the right way at once. */
export class StringKeys {
  readonly #ends = new Map<string, number>()

  /** `ms` is what `PTTL` replied to a call that was sent at `asked`. So a key is never remembered for too long. */
  add(key: string, asked: number, ms: number): void {
    this.#ends.delete(key)
    if (ms === -2) return
    if (this.#ends.size >= MOST) this.#makeRoom()
    this.#ends.set(key, ms < 0 ? Infinity : asked + ms)
  }

  has(key: string): boolean {
    const end = this.#ends.get(key)
    if (end === undefined) return false
    if (end > real.now()) return true
    this.#ends.delete(key)
    return false
  }

  delete(key: string): void {
    this.#ends.delete(key)
  }

  // Expired keys go, or else the oldest one.
  #makeRoom(): void {
    const now = real.now()
    for (const [key, end] of this.#ends) if (end <= now) this.#ends.delete(key)
    const [oldest] = this.#ends.keys()
    if (this.#ends.size >= MOST && oldest !== undefined) this.#ends.delete(oldest)
  }
}
