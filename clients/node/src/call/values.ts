/** Limiters as values: what may stand behind `LIMIT`. */

import { shown } from './arguments.js'
import { ConfigurationError } from '../errors.js'

/** A duration: a whole number with a unit (`ms`, `s`, `m`, `h`, `d` or `w`), as in `'90s'`. Only `'0'` needs no unit. */
export type Duration = string

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1e3, m: 6e4, h: 36e5, d: 864e5, w: 6048e5 }
const LONGEST = 3153600000000
// Each also with an s at its end.
const NAMES_OF = { ms: 'ms millisecond', s: 's sec second', m: 'm min minute', h: 'h hr hour', d: 'd day', w: 'w week' }
const NAMED = new Map(Object.entries(NAMES_OF).flatMap(([unit, names]) => names.split(' ').map((name) => [name, unit])))
const OF_CALENDAR = /^[\d\s]*(M|mo|months?|quarters?|years?)\s*$/
const CALENDAR = new Map([['m', 'month'], ['q', 'quarter'], ['y', 'year']])

/** The milliseconds of a duration. Throws {@link ConfigurationError} if it is not well formed. */
export function milliseconds(name: string, value: Duration): number {
  // A list of one duration would otherwise be written like it.
  const word = typeof value === 'string' || typeof value === 'number' ? String(value) : ''
  const [, count = '', unit = ''] = /^(\d{1,15})(ms|s|m|h|d|w)?$/.exec(word) ?? []
  if (count === '')
    throw new ConfigurationError(`${name} must be a whole number with ms, s, m, h, d or w, such as '90s', not ${shown(value)}${meant(name, word)}`)
  if (unit === '' && (typeof value === 'number' || Number(count) > 0))
    throw new ConfigurationError(`${name} needs a unit: '${count}ms', '${count}s' or '${count}m'`)
  return Number(count) * (UNITS[unit] ?? 1)
}

/** What the writer of a wrong duration may have meant. */
function meant(name: string, word: string): string {
  const calendar = calendarUnit(word)
  if (calendar !== undefined)
    return name === 'window' ? ofCalendar(calendar) : `: m is a minute; a ${calendar} has no fixed length: write days, such as '30d'`
  const [, count, named = ''] = /^\s*(\d*)\s*([a-z]+)\s*$/.exec(word.toLowerCase()) ?? []
  const unit = unitOf(named)
  return unit === undefined ? '' : `: write '${count || 1}${unit}'`
}

/** The unit of this name, such as `m` for `minutes`. */
export function unitOf(name: string): string | undefined {
  return NAMED.get(name) ?? NAMED.get(name.replace(/s$/, ''))
}

/** The unit of a text such as `3 months`, if it is one of a calendar. */
export function calendarUnit(text: string): string | undefined {
  const [, unit = ''] = OF_CALENDAR.exec(text) ?? OF_CALENDAR.exec(text.toLowerCase()) ?? []
  return CALENDAR.get(unit.charAt(0).toLowerCase())
}

/** A hint for a rate or a window with such a unit. */
export function ofCalendar(unit: string): string {
  const word = unit.toUpperCase()
  return `: m is a minute, and a ${unit} is that of a calendar: new Calendar(1000, '${word}'), which is RL.CALENDAR … ${word}`
}

/** Checks a duration against its range in ms, and returns it as a word of a call. */
export function durationWord(name: string, value: Duration, least = 0, most = LONGEST): string {
  const ms = milliseconds(name, value)
  if (ms < least || ms > most)
    throw new ConfigurationError(`${name} must be between ${least} and ${most} ms, not ${shown(value)}`)
  return value
}

/** A duration in its largest unit, such as `'1m'` for `'60s'`, and any other word as it is. */
export function shortest(word: string): string {
  if (!/^\d{1,15}(ms|s|m|h|d|w)$/.test(word)) return word
  const ms = milliseconds('duration', word)
  const [unit, size] = Object.entries(UNITS).reduce((best, next) => (ms % next[1] === 0 ? next : best))
  return `${ms / size}${unit}`
}

/** Checks an integer against its range, and returns it as a word of a call. */
export function integerWord(name: string, value: number, least: number, most: number = Number.MAX_SAFE_INTEGER): string {
  if (!Number.isInteger(value) || value < least || value > most) {
    throw new ConfigurationError(`${name} must be an integer between ${least} and ${most}, not ${shown(value)}`)
  }
  return String(value)
}

/** Checks a decimal against its range, and returns it as a word of a call. */
export function decimalWord(name: string, value: number, least: number, most: number): string {
  if (typeof value !== 'number' || !(value >= least && value <= most)) {
    throw new ConfigurationError(`${name} must be between ${least} and ${most}, not ${shown(value)}`)
  }
  return String(value)
}

/** Checks that a text is not empty and has at most `most` bytes, and returns it. */
export function textWord(name: string, value: string, most = Infinity): string {
  const such = most === Infinity ? 'a text that is not empty' : `a text of 1 to ${most} bytes`
  if (typeof value !== 'string' || value === '') throw new ConfigurationError(`${name} must be ${such}, not ${shown(value)}`)
  const bytes = Buffer.byteLength(value)
  if (bytes > most) throw new ConfigurationError(`${name} must be ${such}, not of ${bytes}`)
  return value
}

/** Checks that a value is one of these words, in upper or lower case as the server takes it, and returns it. */
export function oneOf(name: string, value: string, words: readonly string[]): string {
  if (typeof value === 'string' && words.includes(value.toUpperCase())) return value
  throw new ConfigurationError(`${name} must be ${words.slice(0, -1).join(', ')} or ${words.at(-1)}, not ${shown(value)}`)
}

/** Checks a time zone, and returns it. Its name is looked up in the database of Node.js. */
export function zoneWord(name: string, value: string): string {
  if (typeof value === 'string' && isZone(value)) return value
  throw new ConfigurationError(`${name} must be UTC, an offset such as +02:00, or an IANA name such as Europe/Berlin, not ${shown(value)}`)
}

const OFFSET = /^[+-](?:(?:0\d|1[0-3]):[0-5]\d|14:00)$/

function isZone(zone: string): boolean {
  if (/^[+-]/.test(zone)) return OFFSET.test(zone)
  try {
    return zone !== '' && new Intl.DateTimeFormat('en', { timeZone: zone }) !== undefined
  } catch {
    return false
  }
}

/** A limiter with its parameters. It is checked when it is made, and never changes. */
export abstract class Limiter {
  /** The limiter's name on the wire, such as `GCRA`. Its own command is `RL.` and the name. */
  readonly name: string
  /** Its parameters as words. */
  readonly words: readonly string[]

  protected constructor(name: string, words: readonly string[]) {
    this.name = name
    this.words = Object.freeze(words)
  }
}
