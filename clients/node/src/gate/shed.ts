/**
 * Load shedding in front of the rules.
 *
 * @module
 */

import { checkFunction, known, shown, type Names } from '../call/arguments.js'
import { Decision } from '../decide/decision.js'
import { ConfigurationError, Unavailable } from '../errors.js'
import type { Step } from './steps.js'
import { decimalWord, durationWord, integerWord, textWord, type Duration } from '../call/values.js'
import type { RateLimiter } from '../limiter.js'

/** Throws out the least important requests while the workers are overloaded. */
export interface Shed<R> {
  /** The key of what is overloaded, such as `fleet`. */
  key: string
  /**
   * How busy the workers are, from 0 to 1. Above 1 they are overloaded; 2 and more are the same. If it fails or
   * returns no number, nothing is shed, and a line is logged. So it is if `tier` fails, or returns no tier.
   */
  utilization: () => number
  /** The request's tier, from 1 for what goes first. `null` or `undefined`: it is never shed. */
  tier: (request: R) => number | null | undefined
  /** The number of tiers. */
  tiers: number
  /** Above this utilization the chance grows. 0.8 by default. */
  bad?: number | undefined
  /** Below this utilization the chance falls. 0.7 by default. */
  good?: number | undefined
  /** How long the workers must be overloaded before. 28 s by default. */
  delay?: Duration | undefined
  /** How long the chance then takes from 0 to 1. 120 s by default. */
  ramp?: Duration | undefined
  /** The `Retry-After` of a request that is shed, in seconds: a chance has no end to wait for. 5 by default. */
  retryAfter?: number | undefined
}

const FIVE_SECONDS = 5

// The largest utilization that `RL.SHED` takes.
const MOST = 2

const OF_SHED: Names<Shed<never>> = {
  key: true,
  utilization: true,
  tier: true,
  tiers: true,
  bad: true,
  good: true,
  delay: true,
  ramp: true,
  retryAfter: true,
}

/** Checks a shedder. Throws {@link ConfigurationError}. */
export function checkShed<R>(shed: Shed<R>): void {
  const { key, utilization, tier, tiers, bad, good, delay, ramp, retryAfter } = known('shed', shed, OF_SHED)
  textWord('shed.key', key)
  checkFunction('shed.utilization', utilization)
  checkFunction('shed.tier', tier)
  integerWord('shed.tiers', tiers, 1)
  if (bad !== undefined) decimalWord('shed.bad', bad, 0, 1)
  if (good !== undefined) decimalWord('shed.good', good, 0, 1)
  if (delay !== undefined) durationWord('shed.delay', delay, 1)
  if (ramp !== undefined) durationWord('shed.ramp', ramp, 1)
  integerWord('shed.retryAfter', retryAfter ?? FIVE_SECONDS, 0)
}

/** One `RL.SHED`. */
export class ShedStep<R> implements Step {
  readonly answers = []
  readonly isOpen = false

  constructor(
    private readonly limiter: RateLimiter,
    private readonly shed: Shed<R>,
    private readonly request: R,
  ) {}

  /** The seconds of `Retry-After`. */
  get retryAfter(): number {
    return this.shed.retryAfter ?? FIVE_SECONDS
  }

  async ask(): Promise<Decision> {
    const { key, good, bad, delay, ramp, tiers } = this.shed
    let asked: { tier: number; utilization: number } | undefined
    try {
      asked = this.#asked()
    } catch (error) {
      // A function of the application has failed, which must not fail requests.
      const why = (error as Error)?.message ?? String(error)
      this.limiter.core.channel.log.warn('shed', `RL.SHED, for '${key}': nothing is shed: ${why}`)
      return new Decision([0])
    }
    if (asked === undefined) return new Decision([0])
    const { tier, utilization } = asked
    try {
      const { shed } = await this.limiter.commands.shed(key, utilization, { good, bad, delay, ramp, tier, tiers })
      return new Decision([shed ? 1 : 0])
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      return this.#undecided(error)
    }
  }

  /** What the application's functions say, or nothing if the request is never shed. */
  #asked(): { tier: number; utilization: number } | undefined {
    const { tier, tiers, utilization } = this.shed
    const number = tier(this.request)
    if (number === null || number === undefined) return undefined
    integerWord('shed.tier', number, 1, tiers)
    const busy = utilization()
    if (typeof busy !== 'number' || Number.isNaN(busy))
      throw new ConfigurationError(`shed.utilization must return a number, not ${shown(busy)}`)
    return { tier: number, utilization: Math.min(Math.max(busy, 0), MOST) }
  }

  #undecided(error: Error): Decision {
    return new Decision([this.limiter.core.goesOn(`, for '${this.shed.key}'`, error, false) ? 0 : 1], undefined, error)
  }

  // A report is not undone.
  async undo(): Promise<void> {}
  async end(): Promise<void> {}
}
