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

/** The rate of a limiter, or nothing if it has none that processes can share. */
export function steadyRate(limiter: Limiter): SteadyRate | undefined {
  const { count, burst, per } = factsOf(limiter.name)
  if (!SHARED.has(limiter.name) || per === undefined) return undefined
  const field = (name: string) => (limiter as unknown as Readonly<Record<string, unknown>>)[name]
  const each = count === undefined ? 1 : Number(field(count))
  const most = burst === undefined ? each : Number(field(burst)) + (burst === 'maxBurst' ? 1 : 0)
  return { most, count: each, period: milliseconds(per, field(per) as Duration) }
}
