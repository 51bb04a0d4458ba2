/** At most n at a time. */

/** Lets at most n work at a time. The others wait, first come first served. */
export class Turns {
  readonly #waiting = new Set<() => void>()

  constructor(private free: number) {}

  /**
   * Works when it is its turn.
   *
   * @param patience - waits for the turn, and may give up
   */
  async run<T>(work: () => T | Promise<T>, patience: (turn: Promise<void>) => Promise<void>): Promise<T> {
    if (this.free > 0) this.free -= 1
    else await this.#turn(patience)
    try {
      return await work()
    } finally {
      this.#next()
    }
  }

  async #turn(patience: (turn: Promise<void>) => Promise<void>): Promise<void> {
    let begin = () => {}
    const turn = new Promise<void>((resolve) => (begin = resolve))
    this.#waiting.add(begin)
    try {
      await patience(turn)
    } catch (error) {
      // If the turn came at this moment, it is another one's.
      if (!this.#waiting.delete(begin)) this.#next()
      throw error
    }
  }

  #next(): void {
    const [first] = this.#waiting
    if (first === undefined) {
      this.free += 1
      return
    }
    this.#waiting.delete(first)
    first()
  }
}
