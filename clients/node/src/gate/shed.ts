/** Load shedding in front of the rules. */

import { checkFunction, known, shown, type Names } from '../call/arguments.js'
import type { Call } from '../call/call.js'
import { time } from '../call/settings.js'
import { decimalWord, durationWord, integerWord, textWord, type Duration } from '../call/values.js'
import { Decision } from '../decide/decision.js'
import * as replies from '../decide/replies.js'
import { ConfigurationError, Unavailable } from '../errors.js'
import type { Connected } from '../taken/connected.js'
import type { Step } from './steps.js'

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
  /** The `Retry-After` of a request that is shed, such as `'10s'`: a chance has no end to wait for. 5 s by default. */
  retryAfter?: Duration | undefined
  /** The same in ms. */
  retryAfterMs?: number | undefined
}

const FIVE_SECONDS = 5000

// The largest utilization that `RL.SHED` takes.
const MOST = 2

const OF_SHED: Names<Shed<never>> = {
  key: true, utilization: true, tier: true, tiers: true, bad: true, good: true, delay: true, ramp: true, retryAfter: true,
  retryAfterMs: true,
}

/** Checks a shedder. Throws {@link ConfigurationError}. */
export function checkShed<R>(shed: Shed<R>): void {
  const { key, utilization, tier, tiers, bad, good, delay, ramp } = known('shed', shed, OF_SHED)
  textWord('shed.key', key)
  checkFunction('shed.utilization', utilization)
  checkFunction('shed.tier', tier)
  integerWord('shed.tiers', tiers, 1)
  if (bad !== undefined) decimalWord('shed.bad', bad, 0, 1)
  if (good !== undefined) decimalWord('shed.good', good, 0, 1)
  if (delay !== undefined) durationWord('shed.delay', delay, 1)
  if (ramp !== undefined) durationWord('shed.ramp', ramp, 1)
  retryAfterOf(shed)
}

function retryAfterOf({ retryAfter, retryAfterMs }: Shed<never>): number {
  return time('shed.retryAfter', retryAfter, retryAfterMs, FIVE_SECONDS)
}

/** One `RL.SHED`. */
export class ShedStep<R> implements Step {
  readonly answers = []
  readonly isOpen = false

  constructor(private readonly to: Connected, private readonly shed: Shed<R>, private readonly request: R) {}

  get key(): string {
    return this.shed.key
  }

  /** The ms of `Retry-After`. */
  get retryAfter(): number {
    return retryAfterOf(this.shed)
  }

  async ask(isCounted: boolean): Promise<Decision> {
    const call = this.#call()
    if (call === undefined) return new Decision([0])
    try {
      return new Decision([replies.shed(await this.to.send(call)).shed ? 1 : 0])
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      return new Decision([this.to.core.goesOn(call, error, isCounted) ? 0 : 1], undefined, error)
    }
  }

  // Nothing if the request is never shed, or if the application's functions fail, which must not fail requests.
  #call(): Call | undefined {
    const { key, good, bad, delay, ramp, tiers } = this.shed
    const call = this.to.call('RL.SHED').key(key)
    try {
      const [tier, utilization] = this.#asked()
      if (tier === undefined) return undefined
      call.value(utilization).option('GOOD', good).option('BAD', bad).duration(delay, 'DELAY').duration(ramp, 'RAMP')
      return call.option('TIER', tier).option('OF', tiers)
    } catch (error) {
      this.to.note(call, 'nothing is shed', (error as Error)?.message ?? String(error))
      return undefined
    }
  }

  #asked(): [tier: number | undefined, utilization: number] {
    const { tier, tiers, utilization } = this.shed
    const number = tier(this.request) ?? undefined
    if (number === undefined) return [undefined, 0]
    integerWord('shed.tier', number, 1, tiers)
    const busy = utilization()
    if (typeof busy !== 'number' || Number.isNaN(busy))
      throw new ConfigurationError(`shed.utilization must return a number, not ${shown(busy)}`)
    return [number, Math.min(Math.max(busy, 0), MOST)]
  }

  // A report is not undone.
  async undo(): Promise<void> {}
  async end(): Promise<void> {}
}
