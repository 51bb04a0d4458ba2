/** What a limiter has taken and not given back: leases, holds, and requests behind a middleware. */

/** Something that is given back at its end. */
export interface Endable {
  /** When it ends by itself, in ms of the limiter's clock. */
  readonly until: number
  /** Gives it back. Never throws, and the second call does nothing. */
  end(): Promise<void>
}

// From how many on it is looked for those that nobody gave back.
const MANY = 1000

/** Knows what is taken, so that `close` gives it back. What nobody gives back is forgotten some time after its end. */
export class Taken {
  readonly #each = new Set<Endable>()
  #many = MANY

  constructor(private readonly now: () => number) {}

  get size(): number {
    return this.#each.size
  }

  add(taken: Endable): void {
    this.#each.add(taken)
    if (this.#each.size < this.#many) return
    const now = this.now()
    for (const one of this.#each) if (one.until < now) this.#each.delete(one)
    this.#many = Math.max(MANY, 2 * this.#each.size)
  }

  delete(taken: Endable): void {
    this.#each.delete(taken)
  }

  /** Gives everything back. */
  async end(): Promise<void> {
    await Promise.all([...this.#each].map((one) => one.end()))
  }
}
