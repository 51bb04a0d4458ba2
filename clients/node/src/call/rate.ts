/** Rates as people write them. */

import { known, shown, type Names } from './arguments.js'
import { ConfigurationError } from '../errors.js'
import { calendarUnit, durationWord, integerWord, Limiter, ofCalendar, unitOf } from './values.js'

const RATE = /^\s*(\d+)\s*(?:\/|\s+per\s+)\s*(\d+)?\s*([a-z]+)\s*$/
// Longer texts are none, since the patterns take long for many spaces.
const LONGEST = 64
const WITHOUT_UNIT = /^\s*\d+\s*(?:\/|\s+per\s+)\s*\d+\s*$/

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
    const [, count = '', factor = '1', unit = ''] = isRateText(text) ? RATE.exec(text)! : []
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

/** What the writer of a wrong rate may have meant. */
function hint(text: unknown): string {
  if (typeof text !== 'string' || text === '' || text.length > LONGEST) return ''
  const calendar = calendarUnit(text.split(/\/|\bper\b/).at(-1)!)
  if (calendar !== undefined) return ofCalendar(calendar)
  if (WITHOUT_UNIT.test(text)) return `: the time needs a unit: '${text.trim()}s' or '${text.trim()}m'`
  const lower = text.toLowerCase()
  const [, , , unit] = RATE.exec(lower) ?? []
  if (unit !== undefined) return unitOf(unit) === undefined ? ': units are ms, s, m, h, d, w and their English names' : `: units are lower case: '${lower}'`
  // A number or a duration is rather a rate that is not complete than the name of a policy.
  return isRate(text) || /^\d/.test(text) ? '' : ': a policy is asked by ask(key, policy), and a rule has it as its policy'
}

function isRateText(text: unknown): text is string {
  return typeof text === 'string' && text.length <= LONGEST && RATE.test(text)
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
  if (like === undefined) throw new ConfigurationError("a limiter is missing, such as '10/s' or new Gcra(9, 10, '1s')")
  const kind = Array.isArray(like) ? 'list' : 'clause' in Object(like) ? 'Limit' : ''
  const several = kind && `: a ${kind} is for limits(keys, limits)`
  throw new ConfigurationError(`a limiter is needed, such as '10/s' or new Gcra(9, 10, '1s'), not ${shown(like)}${several}`)
}

/** The limiter that is meant by a call at a key. If they are swapped, the other one may be a secret, such as an API key. */
export function limiterAt(key: string, like: LimiterLike): Limiter {
  try {
    return limiterOf(like)
  } catch (error) {
    throw isRateText(key) ? new ConfigurationError("key and limit are swapped: limit('user:1', '10/s')") : error
  }
}

/** Whether a text is a rate. If not, it may be the name of a policy, which has neither `/` nor a space. */
export function isRate(text: string): boolean {
  return /[/\s]/.test(text)
}
