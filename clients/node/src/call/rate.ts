/** Rates as people write them. */

import { known, shown, type Names } from './arguments.js'
import { ConfigurationError } from '../errors.js'
import { durationWord, integerWord, Limiter } from './values.js'

// Each also with an s at its end.
const NAMES_OF = { ms: 'ms millisecond', s: 's sec second', m: 'm min minute', h: 'h hr hour', d: 'd day', w: 'w week' }
const UNITS = new Map(Object.entries(NAMES_OF).flatMap(([unit, names]) => names.split(' ').map((name) => [name, unit])))
const RATE = /^\s*(\d+)\s*(?:\/|\s+per\s+)\s*(\d+)?\s*([a-z]+)\s*$/
const OF_CALENDAR = /^[\d\s]+(?:\/|per\s)[\d\s]*(?:M|mo|months?|quarters?|years?)\s*$/

/** What may be said of a rate. */
export interface RateOptions {
  /** The most requests at once, from 1 on. The count of the rate by default. */
  burst?: number | undefined
}

const NAMES: Names<RateOptions> = { burst: true }

/**
 * A rate, such as `'10/s'`, `'1000/d'`, `'100/15m'` or `'10 per minute'`: a GCRA whose burst is the count.
 *
 * ```js
 * new Rate('10/s')                // ten at once, then one each 100 ms
 * new Rate('10/s', { burst: 20 }) // twenty at once
 * ```
 */
export class Rate extends Limiter {
  /** How many requests may come at once after the first. */
  readonly maxBurst: number
  /** How many requests are admitted per period. */
  readonly count: number
  /** The period, such as `1s` or `15m`. */
  readonly period: string

  /**
   * @param text - count, `/` or `per`, an optional number, and a unit from ms to weeks, in lower case: `m` is a minute. A
   *   calendar's month is `new Calendar(1000, 'MONTH')`
   * @throws {@link ConfigurationError} if the text is no rate, or an option is wrong
   */
  constructor(text: string, options: RateOptions = {}) {
    known('options', options, NAMES)
    const [, count = '', factor = '1', unit = ''] = RATE.exec(text) ?? []
    const word = unitOf(unit)
    if (word === undefined) throw new ConfigurationError(`${shown(text)} is no rate, such as '10/s', '100/15m' or '10 per minute'${hint(text)}`)
    const most = Number(integerWord(`the count of '${text}'`, Number(count), 1))
    const burst = Number(integerWord('burst', options.burst ?? most, 1))
    const period = durationWord(`the period of '${text}'`, `${Number(factor)}${word}`, 1)
    super('GCRA', [String(burst - 1), String(most), period])
    this.maxBurst = burst - 1
    this.count = most
    this.period = period
    Object.freeze(this)
  }
}

function unitOf(unit: string): string | undefined {
  return UNITS.get(unit) ?? UNITS.get(unit.replace(/s$/, ''))
}

/** What the writer of a wrong rate may have meant. */
function hint(text: unknown): string {
  if (typeof text !== 'string' || text === '') return ''
  const lower = text.toLowerCase()
  if (OF_CALENDAR.test(text) || OF_CALENDAR.test(lower))
    return ": m is a minute, and a month is that of a calendar: new Calendar(1000, 'MONTH'), which is RL.CALENDAR … MONTH"
  if (unitOf(RATE.exec(lower)?.[3] ?? '') !== undefined) return `: units are lower case: '${lower}'`
  return isRate(text) ? '' : ': a policy is asked by ask(), and is the policy of a rule'
}

/** A limiter, or a rate such as `'10/s'`. */
export type LimiterLike = Limiter | string

// A program has few rates, but asks them often.
const KNOWN = new Map<string, Rate>()
const MOST = 1000

/** The limiter that is meant. Throws {@link ConfigurationError} if it is none. */
export function limiterOf(like: LimiterLike): Limiter {
  if (typeof like === 'string') {
    const known = KNOWN.get(like)
    if (known !== undefined) return known
    const rate = new Rate(like)
    if (KNOWN.size >= MOST) KNOWN.clear()
    KNOWN.set(like, rate)
    return rate
  }
  if (typeof like?.name === 'string' && Array.isArray(like.words)) return like
  throw new ConfigurationError(`a limiter is needed, such as '10/s' or new Gcra(9, 10, '1s'), not ${shown(like)}`)
}

/** Whether a text is a rate. If not, it may be the name of a policy, which has neither `/` nor a space. */
export function isRate(text: string): boolean {
  return /[/\s]/.test(text)
}
