/**
 * A promise with an end.
 *
 * @module
 */

/** Makes the error for what was not done in time. `isBusy`: the process itself was late, so it may not be the server. */
export type Late = (isBusy: boolean) => Error

// A timer that fires so late gives so much more time, so often. In ms.
const LATE = 10
const GRACE = 50
const GRACES = 3

/**
 * Settles as `work` does, unless `ms` pass first or `signal` is aborted.
 *
 * In a process that was busy, timers fire before replies are read that have arrived long ago. So the end comes after what has
 * arrived was read, and later if the timer was late.
 *
 * @param late - makes the error for the first case; in the second it is the signal's reason
 */
export function within<T>(work: Promise<T>, ms: number, signal: AbortSignal | undefined, late: Late): Promise<T> {
  return new Promise((resolve, reject) => {
    // A timer of Node.js takes at most 2^31 - 1 ms, which is 24 days.
    let due = performance.now() + ms
    let graces = 0
    let isOver = false
    let timer = setTimeout(fire, Math.min(ms, 2 ** 31 - 1))
    function fire(): void {
      if (performance.now() - due > LATE && graces < GRACES) {
        graces += 1
        due = performance.now() + GRACE
        timer = setTimeout(fire, GRACE)
        return
      }
      setImmediate(() => isOver || end(() => reject(late(graces > 0))))
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
