/** The delay before the next attempt. */

import type { Runtime } from '../runtime.js'

/** Doubles with each attempt, from `first` up to `longest`, in ms. Half of it is random, so that callers spread. */
export function backoff({ random }: Pick<Runtime, 'random'>, attempt: number, first = 50, longest = 1000): number {
  const delay = Math.min(first * 2 ** Math.min(attempt, 30), longest)
  return Math.ceil(delay / 2 + (random() * delay) / 2)
}

/** The delay before a client connects again, in ms: the first time at once, for a connection may have been idle too long. */
export function reconnection(runtime: Runtime, attempt: number): number {
  return attempt === 0 ? 1 : backoff(runtime, attempt)
}
