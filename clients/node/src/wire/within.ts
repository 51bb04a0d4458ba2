/**
 * A promise with an end.
 *
 * @module
 */

/** A server from which replies come in. */
export interface Heard {
  /** The number of replies until now. */
  readonly replies: number
}

// A timer that fires later than this, in ms, shows that the process was busy. It waits longer then, so often.
const LATE = 10
const GRACES = 3
// While replies to other calls come in, a call waits longer for its own: so many times.
const SLICES = 18
// How much longer at least, in ms.
const LONGER = 50

/**
 * Settles as `work` does, unless the time is over first or `signal` is aborted.
 *
 * The time is `ms`, and longer in two cases, both bounded:
 *
 * - The process was busy, so the timer fired late. Replies may be there that nobody has read.
 * - Replies to other calls come in. Then the server answers, and this call is in a queue with many others.
 *
 * @param late - makes the error for when the time is over; if it is aborted, it is the signal's reason
 * @param heard - the server that is asked, if it answers other calls too
 */
export function within<T>(
  work: Promise<T>,
  ms: number,
  signal: AbortSignal | undefined,
  late: () => Error,
  heard?: Heard,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const patience = new Patience(ms, heard)
    let isOver = false
    let timer = setTimeout(fire, bounded(ms))
    function fire(): void {
      const now = performance.now()
      // Timers come before sockets. So what has arrived is read first.
      setImmediate(() => {
        if (isOver) return
        const more = patience.more(now)
        if (more === 0) end(() => reject(late()))
        else timer = setTimeout(fire, more)
      })
    }
    const abort = () => end(() => reject(signal?.reason as Error))
    function end(settle: () => void): void {
      isOver = true
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      settle()
    }
    signal?.addEventListener('abort', abort, { once: true })
    work.then(
      (value) => end(() => resolve(value)),
      (error: unknown) => end(() => reject(error as Error)),
    )
    if (signal?.aborted) abort()
  })
}

/** How much longer a call waits when its time is over. Times are in ms. */
export class Patience {
  readonly #longest: number
  #due: number
  #graces = GRACES
  #slices = SLICES
  #replies: number

  constructor(
    ms: number,
    private readonly heard: Heard | undefined,
    now = performance.now(),
  ) {
    this.#longest = Math.max(ms, LONGER)
    this.#due = now + bounded(ms)
    this.#replies = heard?.replies ?? 0
  }

  /** How much longer, when a timer fired at `now`. 0: no longer. */
  more(now: number): number {
    const more = this.#late(now - this.#due) || this.#moving()
    this.#due = now + more
    return more
  }

  // As long as the process was busy, but not more than the whole time again.
  #late(lateness: number): number {
    if (lateness <= LATE || this.#graces === 0) return 0
    this.#graces -= 1
    return Math.min(Math.max(lateness, LONGER), this.#longest)
  }

  #moving(): number {
    const replies = this.heard?.replies ?? 0
    if (replies === this.#replies || this.#slices === 0) return 0
    this.#replies = replies
    this.#slices -= 1
    return Math.min(this.#longest, LONGER)
  }
}

// A timer of Node.js takes at most 2^31 - 1 ms, which is 24 days.
function bounded(ms: number): number {
  return Math.min(ms, 2 ** 31 - 1)
}
