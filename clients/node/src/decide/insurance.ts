/**
 * What a process admits while the server does not answer: its share of the limit.
 *
 * Each process admits B = max(1, ⌊C / processes⌋) at once, and then r / processes, where C is the most that the limit admits
 * at once and r its rate. In any time t, n processes that are cut off admit at most n * (B + r * t / processes): at most the
 * limit once more if C is at least `processes`. What they admit is not charged later.
 */

import { can } from '../call/facts.js'
import { limitOf } from '../call/limit.js'
import type { Question } from '../call/questions.js'
import { steadyRate, type SteadyRate } from '../call/steady.js'
import type { Limiter } from '../call/values.js'
import type { Integers } from './decision.js'

/** What a call takes of a share. */
export interface Claim {
  /** What has the share: a key with a limiter. */
  readonly place: string
  /** The rate of all processes. */
  readonly rate: SteadyRate
  readonly processes: number
  readonly cost: number
}

/** How much of a share is left, as of when, and when it is full again. */
interface Left {
  readonly left: number
  readonly at: number
  readonly full: number
}

interface Fit {
  readonly allowed: boolean
  readonly limit: number
  readonly left: number
  readonly retryAfter: number
  readonly resetAfter: number
}

/** The most keys. */
export const MOST_KEYS = 10_000
/** The time between two looks for keys that are full again, in ms. */
export const SWEEP = 1000
// Times are whole ms in decisions, rounded up. The error of a float is no ms.
const ERROR = 1e-6

/** The shares of a process. It keeps 10,000 keys; further ones are refused until others are full again. Times are in ms. */
export class Insurance {
  // One that is missing is full.
  readonly #left = new Map<string, Left>()
  #swept = -Infinity

  /** The number of keys. */
  get size(): number {
    return this.#left.size
  }

  /**
   * Admits a call if all its claims fit, and then takes them. Returns the integers of a decision: those of the claim that
   * binds.
   *
   * @param claims - each for another place
   * @param charges - false for a look, which takes nothing
   */
  take(claims: readonly Claim[], now: number, charges: boolean): Integers {
    const fits = claims.map((claim) => this.#fit(claim, now, charges))
    const refused = fits.filter(({ allowed }) => !allowed)
    if (refused.length > 0) return integers(refused.reduce((one, other) => (other.retryAfter > one.retryAfter ? other : one)))
    if (charges) {
      for (const [i, { left, resetAfter }] of fits.entries()) this.#left.set(claims[i]!.place, { left, at: now, full: now + resetAfter })
    }
    if (fits.length === 0) return [0, 0, 0, 0, 0]
    return integers(fits.reduce((one, other) => (Math.floor(other.left) < Math.floor(one.left) ? other : one)))
  }

  #fit({ place, rate, processes, cost }: Claim, now: number, charges: boolean): Fit {
    const limit = shareOf(rate, processes)
    const known = this.#left.get(place)
    if (known === undefined && !this.#hasRoom(now)) return { allowed: false, limit, left: 0, retryAfter: SWEEP, resetAfter: 0 }
    // A float of at most 2^53, which is off by far less than 1: one call more or less in a very long time.
    const interval = (processes * rate.period) / rate.count
    const before = known === undefined ? limit : Math.min(limit, known.left + (now - known.at) / interval)
    const allowed = cost <= before
    const left = allowed && charges ? before - cost : before
    return { allowed, limit, left, retryAfter: allowed ? 0 : (cost - before) * interval, resetAfter: (limit - left) * interval }
  }

  /** Whether there is room for another key, after those that are full again have gone. */
  #hasRoom(now: number): boolean {
    if (this.#left.size >= MOST_KEYS && now - this.#swept >= SWEEP) {
      this.#swept = now
      for (const [place, { full }] of this.#left) if (full <= now) this.#left.delete(place)
    }
    return this.#left.size < MOST_KEYS
  }
}

/** The most that a process admits at once. */
export function shareOf({ most }: SteadyRate, processes: number): number {
  return Math.max(1, Math.floor(most / processes))
}

/** The place of a key with a limiter. */
export function placeOf(key: string, { name, words }: Limiter, processes: number): string {
  return JSON.stringify([name, words, processes, key])
}

/** What a question takes of shares, or nothing if it asks what has no rate. */
export function claimsOf({ call, about, cost = 1 }: Question<unknown>, processes: number): Claim[] | undefined {
  if (typeof about === 'string') return undefined
  const several = typeof about === 'object' && about !== null && 'limits' in about ? (about as { limits: readonly Limiter[] }).limits : [about as Limiter]
  const claims: Claim[] = []
  for (const limit of several.map(limitOf)) {
    const { limiter, on, shadow } = limit
    const rate = steadyRate(limiter)
    if (rate === undefined) return undefined
    if (shadow) continue
    const own = limit.cost ?? (can(limiter, 'one_each') ? Math.min(1, cost) : cost)
    for (const key of on === undefined ? call.keys : call.keys.slice(on - 1, on))
      claims.push({ place: placeOf(key, limiter, processes), rate, processes, cost: own })
  }
  return claims
}

function integers({ allowed, limit, left, retryAfter, resetAfter }: Fit): Integers {
  return [allowed ? 0 : 1, limit, Math.floor(left), up(retryAfter), up(resetAfter)]
}

function up(ms: number): number {
  return Math.max(0, Math.ceil(ms - ERROR))
}
