/** What a limiter takes from its process: the time, timers and chance. Here are the real ones, and only here. */

import { randomUUID } from 'node:crypto'

/** Ends a timer. */
export type Cancel = () => void

/** The time, timers and chance. Times are in ms. */
export interface Runtime {
  /** A clock that never goes back. */
  now(): number
  /** The Unix time, for headers that name an instant. */
  unix(): number
  /** Works after a time. */
  after(ms: number, work: () => void): Cancel
  /** The same by a timer that does not keep the process alive. */
  later(ms: number, work: () => void): Cancel
  /** Works when what has arrived until now has been read. */
  soon(work: () => void): void
  /** A new id, which nobody can guess. */
  id(): string
  /** From 0 to 1, but not 1. */
  random(): number
}

/** Those of the process. */
export const real: Runtime = {
  now: () => performance.now(),
  unix: () => Date.now(),
  after(ms, work) {
    const timer = setTimeout(work, bounded(ms))
    return () => clearTimeout(timer)
  },
  later(ms, work) {
    const timer = setTimeout(work, bounded(ms)).unref()
    return () => clearTimeout(timer)
  },
  soon: (work) => void setImmediate(work),
  id: () => randomUUID(),
  random: () => Math.random(),
}

/** Resolves after a time. */
export function pause(runtime: Runtime, ms: number): Promise<void> {
  return new Promise((resolve) => void runtime.after(ms, resolve))
}

// A timer of Node.js takes at most 2^31 - 1 ms, which is 24 days.
function bounded(ms: number): number {
  return Math.min(ms, 2 ** 31 - 1)
}
