/** From replies to values. A reply has the same meaning whatever the client and its protocol made of it. */

import { AskDecision, Decision, LeaseDecision, MultiDecision, SettledDecision } from './decision.js'
import { RateLimitError } from '../errors.js'
import { can } from '../call/facts.js'
import { pairs, type LimitLike, type Pair } from '../call/limit.js'
import { limiterOf, type LimiterLike } from '../call/rate.js'
import type { Limiter } from '../call/values.js'

/** A value in `RL.INFO` and `RL.POLICY`: a number, a text, or several. */
export type Value = string | number | Value[] | { [field: string]: Value }

/** A key that is refused often. */
export interface TopEntry {
  key: string
  /** The number of its database. */
  database: number
  /** How often it was refused. */
  refusals: number
  /** By how much that may be too many. */
  error: number
}

/** Whether a call is shed. */
export interface Shed {
  shed: boolean
  /** The chance of that, from 0 to 1. */
  chance: number
}

/** A decision of one limiter, which the headers name. `cost` is what the call asked for, if that is known. */
export function decision(reply: unknown, limiter?: LimiterLike, cost?: number): Decision {
  return new Decision(integers(reply), limiter === undefined ? undefined : limiterOf(limiter), undefined, cost)
}

export function lease(reply: unknown, limiter?: Limiter, cost?: number): LeaseDecision {
  return new LeaseDecision(integers(reply), limiter, undefined, cost)
}

export function settled(reply: unknown, limiter?: LimiterLike): SettledDecision {
  return new SettledDecision(integers(reply, 6), limiter === undefined ? undefined : limiterOf(limiter))
}

/** Times in seconds become ms. An admitted call has -1 as its wait, which is 0 here. */
export function throttle(reply: unknown): Decision {
  const [limited = 0, limit = 0, remaining = 0, retry = 0, reset = 0] = integers(reply)
  const wait = limited === 0 ? 0 : retry < 0 ? -1 : retry * 1000
  return new Decision([limited, limit, remaining, wait, reset * 1000])
}

/** @param limits - what was asked, so that the answer of each can say so in its headers */
export function multi(reply: unknown, limits: readonly LimitLike[] = [], keys = 1, cost?: number): MultiDecision {
  const [all, each, count] = array(reply)
  return new MultiDecision(integers(all), decisions(each, pairs(limits, keys), cost), count === undefined ? undefined : number(count))
}

export function ask(reply: unknown, cost?: number): AskDecision {
  const [six, each] = full(reply, cost)
  return new AskDecision(six.slice(0, 5), six[5], each, undefined, undefined, cost)
}

export function askSettled(reply: unknown): AskDecision {
  const [six, each] = full(reply)
  return new AskDecision(six.slice(0, 5), 0, each, six[5])
}

export function bool(reply: unknown): boolean {
  return number(reply) === 1
}

export function int(reply: unknown): number {
  return number(reply)
}

export function length(reply: unknown): number | null {
  return reply === null ? null : number(reply)
}

export function id(reply: unknown): string | null {
  return reply === null ? null : word(reply)
}

export function ok(reply: unknown): string {
  if (word(reply) !== 'OK') throw unknown(reply)
  return 'OK'
}

export function help(reply: unknown): string[] {
  return array(reply).map(String)
}

export function shed(reply: unknown): Shed {
  const [limited, chance] = array(reply)
  return { shed: number(limited) === 1, chance: fraction(chance) }
}

export function top(reply: unknown): TopEntry[] {
  return array(reply).map((row) => {
    const [key, database, refusals, error] = array(row)
    return { key: String(key), database: number(database), refusals: number(refusals), error: number(error) }
  })
}

/** A map of what a key or a policy holds, or `null` if there is none. */
export function map(reply: unknown): Record<string, Value> | null {
  if (reply === null) return null
  return Object.fromEntries(entries(reply).map(([field, value]) => [field, plain(value)]))
}

export const info = map

/** The names and versions of policies. */
export function policies(reply: unknown): Record<string, number> {
  return Object.fromEntries(entries(reply).map(([name, version]) => [name, number(version)]))
}

function decisions(reply: unknown, asked: readonly Pair[], cost?: number): Decision[] {
  return array(reply).map((five, i) => {
    const { limiter, cost: own = cost } = asked[i] ?? {}
    const charged = own !== undefined && limiter !== undefined && can(limiter, 'one_each') ? Math.min(1, own) : own
    return new Decision(integers(five), limiter, undefined, charged)
  })
}

function full(reply: unknown, cost?: number): [number[], Decision[] | undefined] {
  const [first, each] = array(reply)
  return Array.isArray(first) ? [integers(first, 6), decisions(each, [], cost)] : [integers(reply, 6), undefined]
}

function integers(reply: unknown, least = 5): number[] {
  const list = array(reply)
  if (list.length < least) throw unknown(reply)
  return list.map(number)
}

// No integer of a reply is larger. node-redis and ioredis 6 add up digits in floating point, and make 2^53 of 2^53 - 1.
function number(value: unknown): number {
  return Math.min(fraction(value), Number.MAX_SAFE_INTEGER)
}

// A client may leave numbers as texts.
function fraction(value: unknown): number {
  const isNumber = typeof value === 'number' || typeof value === 'bigint' || (typeof value === 'string' && /^-?\d/.test(value))
  const read = isNumber || Buffer.isBuffer(value) ? Number(value) : NaN
  if (Number.isNaN(read)) throw unknown(value)
  return read
}

function word(reply: unknown): string {
  if (typeof reply !== 'string' && !Buffer.isBuffer(reply)) throw unknown(reply)
  return String(reply)
}

function array(reply: unknown): unknown[] {
  if (Array.isArray(reply)) return reply as unknown[]
  throw unknown(reply)
}

function unknown(reply: unknown): RateLimitError {
  return new RateLimitError(`a reply of an unknown form: ${JSON.stringify(reply) ?? String(reply)}`)
}

// With RESP2 a map is a list of fields and values. With RESP3 a client makes a Map or an object of it.
function entries(reply: unknown): [string, unknown][] {
  if (reply instanceof Map) return [...(reply as Map<unknown, unknown>)].map(([field, value]) => [String(field), value])
  if (typeof reply !== 'object') throw unknown(reply)
  if (!Array.isArray(reply)) return Object.entries(reply as Record<string, unknown>)
  const list = reply as unknown[]
  return list.flatMap((field, i) => (i % 2 === 0 ? [[String(field), list[i + 1]] as [string, unknown]] : []))
}

// A list of lists is that of the limits of a key. Each is a map. A client may leave numbers as texts.
function plain(value: unknown): Value {
  if (typeof value === 'number') return value
  if (Buffer.isBuffer(value)) return plain(value.toString())
  if (typeof value === 'string') return /^-?\d{1,16}$/.test(value) ? number(value) : value
  if (Array.isArray(value))
    return (value as unknown[]).map((item) => (typeof item === 'object' && item !== null ? (map(item) ?? {}) : plain(item)))
  if (typeof value === 'object' && value !== null) return map(value) ?? {}
  return String(value)
}
