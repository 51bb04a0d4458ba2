/** Metrics of a limiter, by OpenTelemetry. */

import { metrics, type Attributes, type Meter, type ObservableResult } from '@opentelemetry/api'
import { known, type Names } from './call/arguments.js'
import type { Counters } from './decide/counters.js'
import type { Decision } from './decide/decision.js'
import type { RateLimiter } from './limiter.js'

/** How a limiter is measured. */
export interface InstrumentOptions {
  /** The meter. That of the global provider by default, under the name `redis-ratelimit`. */
  meter?: Meter | undefined
  /** Attributes of all values, such as the name of the limiter. */
  attributes?: Attributes | undefined
}

const NAMES: Names<InstrumentOptions> = { meter: true, attributes: true }
// In seconds: most answers take less than one millisecond, and the time-out is a tenth of a second by default.
const BOUNDARIES = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 10]

/**
 * Measures a limiter: each of its counters as `redis_ratelimit.` and its name, such as `redis_ratelimit.failed_open`, and the
 * histogram `redis_ratelimit.decision.duration` in seconds, by `command` and `outcome`. No attribute has a key.
 *
 * ```js
 * const end = instrument(limiter, { attributes: { limiter: 'api' } })
 * ```
 *
 * @returns a function that ends it
 */
export function instrument(limiter: RateLimiter, options: InstrumentOptions = {}): () => void {
  const { meter = metrics.getMeter('redis-ratelimit'), attributes = {} } = known('options', options, NAMES)
  const names = Object.keys(limiter.counters) as (keyof Counters)[]
  const ends = names.map((name) => {
    const counter = meter.createObservableCounter(`redis_ratelimit.${name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`)
    const observe = (result: ObservableResult) => result.observe(limiter.counters[name], attributes)
    counter.addCallback(observe)
    return () => counter.removeCallback(observe)
  })
  const advice = { explicitBucketBoundaries: BOUNDARIES }
  const duration = meter.createHistogram('redis_ratelimit.decision.duration', { unit: 's', advice })
  ends.push(
    limiter.connected.core.told.add((decision, { command, ms }) =>
      duration.record(ms / 1000, { ...attributes, command, outcome: outcomeOf(decision) }),
    ),
  )
  return () => ends.forEach((end) => end())
}

function outcomeOf({ allowed, answered }: Decision): string {
  if (answered) return allowed ? 'allowed' : 'refused'
  return allowed ? 'failed_open' : 'failed_closed'
}
