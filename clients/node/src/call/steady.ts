/** The steady rate of a limiter, for what is decided without the server. */

import { factsOf } from './facts.js'
import { milliseconds, type Duration, type Limiter } from './values.js'

/** At most `most` at once, and `count` in each period, in ms. */
export interface SteadyRate {
  readonly most: number
  readonly count: number
  readonly period: number
}

// What has a rate that processes can share. That of a window is its limit in its length.
const SHARED = new Set('GCRA TOKENBUCKET LEAKYBUCKET FIXEDWINDOW SLIDINGWINDOW SLIDINGLOG UNIFORM SKETCH'.split(' '))

/** A parameter of a limiter. */
export function fieldOf(limiter: Limiter, name: string): unknown {
  return (limiter as unknown as Readonly<Record<string, unknown>>)[name]
}

/** The count per time. */
export function countOf(limiter: Limiter): number {
  const { count } = factsOf(limiter.name)
  return count === undefined ? 1 : Number(fieldOf(limiter, count))
}

/** The time of the count, in ms. */
export function periodOf(limiter: Limiter): number {
  const { per = '' } = factsOf(limiter.name)
  return milliseconds(per, fieldOf(limiter, per) as Duration)
}

/** The rate of a limiter, or nothing if it has none that processes can share. */
export function steadyRate(limiter: Limiter): SteadyRate | undefined {
  const { burst, per } = factsOf(limiter.name)
  if (!SHARED.has(limiter.name) || per === undefined) return undefined
  const count = countOf(limiter)
  const most = burst === undefined ? count : Number(fieldOf(limiter, burst)) + (burst === 'maxBurst' ? 1 : 0)
  return { most, count, period: periodOf(limiter) }
}
