/** At most n at a time. */

/** Lets at most n work at a time. The others wait, first come first served. */
export class Turns {
  readonly #waiting = new Set<() => void>()

  constructor(private free: number) {}

  /** Takes a turn, if there is one at once. */
  take(): boolean {
    if (this.free === 0) return false
    this.free -= 1
    return true
  }

  /**
   * Waits for a turn.
   *
   * @param patience - waits for it, and may give up
   */
  async wait(patience: (turn: Promise<void>) => Promise<void>): Promise<void> {
    let begin = () => {}
    const turn = new Promise<void>((resolve) => (begin = resolve))
    this.#waiting.add(begin)
    try {
      await patience(turn)
    } catch (error) {
      // If the turn came at this moment, it is another one's.
      if (!this.#waiting.delete(begin)) this.leave()
      throw error
    }
  }

  /** Ends a turn, so that the next begins. */
  leave(): void {
    const [first] = this.#waiting
    if (first === undefined) {
      this.free += 1
      return
    }
    this.#waiting.delete(first)
    first()
  }
}
