/**
 * The delay before the next attempt.
 *
 * @module
 */

/** Doubles with each attempt, from `first` up to `longest`, in ms. Half of it is random, so that callers spread. */
export function backoff(attempt: number, first = 50, longest = 1000): number {
  const delay = Math.min(first * 2 ** Math.min(attempt, 30), longest)
  return Math.ceil(delay / 2 + (Math.random() * delay) / 2)
}
