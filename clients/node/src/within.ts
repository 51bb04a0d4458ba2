/**
 * A promise with an end.
 *
 * @module
 */

/**
 * Settles as `work` does, unless `ms` pass first or `signal` is aborted.
 *
 * @param late - makes the error for the first case; in the second it is the signal's reason
 */
export function within<T>(work: Promise<T>, ms: number, signal: AbortSignal | undefined, late: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => end(() => reject(signal?.reason as Error))
    // A timer of Node.js takes at most 2^31 - 1 ms, which is 24 days.
    const timer = setTimeout(() => end(() => reject(late())), Math.min(ms, 2 ** 31 - 1))
    const end = (settle: () => void) => {
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
