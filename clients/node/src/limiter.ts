/**
 * Limiters as values: what may stand behind `LIMIT`.
 *
 * @module
 */

import { shown } from './arguments.js'
import { ConfigurationError } from './errors.js'

/** A duration: an integer of milliseconds, or an integer with a unit (`ms`, `s`, `m`, `h`, `d`, `w`), as in `'90s'`. */
export type Duration = number | string

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1e3, m: 6e4, h: 36e5, d: 864e5, w: 6048e5 }
const LONGEST = 3153600000000

/** The milliseconds of a duration. Throws {@link ConfigurationError} if it is not well formed. */
export function milliseconds(name: string, value: Duration): number {
  const [, count, unit = 'ms'] = /^(\d{1,15})(ms|s|m|h|d|w)?$/i.exec(isWord(value) ? String(value) : '') ?? []
  const factor = UNITS[unit.toLowerCase()]
  if (count === undefined || factor === undefined) {
    throw new ConfigurationError(`${name} must be a whole number of ms, or one with a unit such as '90s', not ${shown(value)}`)
  }
  return Number(count) * factor
}

/** A duration as a word of a call, with its unit. It is not checked. */
export function withUnit(value: Duration): string {
  const word = String(value)
  return typeof value === 'number' || /^\d+$/.test(word) ? `${word}ms` : word
}

/** Checks a duration against its range in ms, and returns it as a word of a call. */
export function durationWord(name: string, value: Duration, least = 0, most = LONGEST): string {
  const ms = milliseconds(name, value)
  if (ms < least || ms > most)
    throw new ConfigurationError(`${name} must be between ${least} and ${most} ms, not ${shown(value)}`)
  return withUnit(value)
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

/** Checks that a text is not empty, and returns it. */
export function textWord(name: string, value: string): string {
  if (typeof value !== 'string' || value === '') throw new ConfigurationError(`${name} must be a text that is not empty`)
  return value
}

// A list of one duration would otherwise be written like it.
function isWord(value: unknown): boolean {
  return typeof value === 'number' || typeof value === 'string'
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
