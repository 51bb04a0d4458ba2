/** A promise with an end. */

import { setMaxListeners } from 'node:events'
import type { Cancel, Runtime } from '../runtime.js'

/** A server from which replies come in. */
export interface Heard {
  /** The number of replies until now. */
  readonly replies: number
}

/** What ends a wait. */
export interface Bounds {
  /** How long it is waited, in ms. */
  ms: number
  /** If it is aborted, its reason is the error. */
  signal?: AbortSignal | undefined
  /** Makes the error for when the time is over. */
  late: () => Error
  /** The server that is asked, if it answers other calls too. */
  heard?: Heard
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
 */
export function within<T>(runtime: Runtime, work: Promise<T>, { ms, signal, late, heard }: Bounds): Promise<T> {
  return new Promise((resolve, reject) => {
    const patience = new Patience(ms, heard, runtime.now())
    let isOver = false
    let cancel: Cancel = runtime.after(ms, fire)
    function fire(): void {
      const now = runtime.now()
      // Timers come before sockets. So what has arrived is read first.
      runtime.soon(() => {
        if (isOver) return
        const more = patience.more(now)
        if (more === 0) end(() => reject(late()))
        else cancel = runtime.after(more, fire)
      })
    }
    function end(settle: () => void): void {
      isOver = true
      cancel()
      signal?.removeEventListener('abort', abort)
      settle()
    }
    const abort = () => end(() => reject(signal?.reason as Error))
    // Many calls may share a signal. Node.js would warn of more than ten.
    if (signal instanceof EventTarget) setMaxListeners(0, signal)
    signal?.addEventListener('abort', abort, { once: true })
    work.then((value) => end(() => resolve(value)), (error: unknown) => end(() => reject(error as Error)))
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

  constructor(ms: number, private readonly heard: Heard | undefined, now: number) {
    this.#longest = Math.max(ms, LONGER)
    this.#due = now + ms
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
