/**
 * Load shedding in front of the rules.
 *
 * @module
 */

import { Decision } from './decision.js'
import { ConfigurationError, Unavailable } from './errors.js'
import type { Step } from './gate-steps.js'
import { integerWord, textWord, type Duration } from './limiter.js'
import type { RateLimiter } from './rate-limiter.js'

/** Throws out the least important requests while the workers are overloaded. */
export interface Shed<R> {
  /** The key of what is overloaded, such as `fleet`. */
  key: string
  /** How busy the workers are, from 0 to 1. */
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

/** Checks a shedder. Throws {@link ConfigurationError}. */
export function checkShed<R>({ key, utilization, tier, tiers, retryAfter }: Shed<R>): void {
  textWord('shed.key', key)
  integerWord('shed.tiers', tiers, 1)
  integerWord('shed.retryAfter', retryAfter ?? FIVE_SECONDS, 0)
  if (typeof utilization !== 'function') throw new ConfigurationError('shed.utilization must be a function')
  if (typeof tier !== 'function') throw new ConfigurationError('shed.tier must be a function')
}

/** One `RL.SHED`. */
export class ShedStep implements Step {
  readonly answers = []

  constructor(
    private readonly limiter: RateLimiter,
    private readonly shed: Shed<never>,
    private readonly tier: number,
  ) {}

  /** The seconds of `Retry-After`. */
  get retryAfter(): number {
    return this.shed.retryAfter ?? FIVE_SECONDS
  }

  async ask(): Promise<Decision> {
    const { key, utilization, good, bad, delay, ramp, tiers } = this.shed
    try {
      const { shed } = await this.limiter.commands.shed(key, utilization(), { good, bad, delay, ramp, tier: this.tier, tiers })
      return new Decision([shed ? 1 : 0])
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      const { settings, channel } = this.limiter.core
      channel.log.warn(`unanswered ${error.kind}`, `${error.message}, for '${key}'; ${settings.isOpen ? 'let through' : 'not let through'}`)
      return new Decision([settings.isOpen ? 0 : 1], undefined, error)
    }
  }

  // A report is not undone.
  async undo(): Promise<void> {}
  async end(): Promise<void> {}
}
