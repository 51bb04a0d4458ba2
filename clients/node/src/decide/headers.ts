/** The fields of draft-ietf-httpapi-ratelimit-headers-10, from decisions. */

import { ConfigurationError } from '../errors.js'
import { can, factsOf } from '../call/facts.js'
import { countOf, fieldOf, periodOf } from '../call/steady.js'
import type { Limiter } from '../call/values.js'

/** What the headers say of a decision. */
export interface Headed {
  readonly allowed: boolean
  readonly answered: boolean
  readonly limit: number
  readonly remaining: number
  readonly retryAfter: number | null
  readonly resetAfter: number
  readonly limiter: Limiter | undefined
}

/** Callers who are refused at once are told different times, so that they do not come back at once. */
export interface Spread {
  /** How much later at most, as a part of the wait: 0 to 1. */
  readonly most: number
  /** The hash slot of the limit's key, which says how much of that. */
  readonly slot: number
}

/** A decision, the name of its limit in the headers, and how its `Retry-After` is spread. */
export type Named = readonly [name: string, decision: Headed, spread?: Spread | undefined]

/** Fields of a response. */
export type Fields = Record<string, string>

/** The greatest integer in a structured field (RFC 9651, section 3.3.1). A greater one would make the whole field invalid. */
const MOST = 999_999_999_999_999
/** Seconds after which to try again for a lease, which may be released at any time. */
const LEASE_RETRY = 1
/** Shorter waits are not spread, in ms. */
const SPREAD_FROM = 5000

/**
 * The headers of a response to a request with several limits.
 *
 * A refusal lists only the limits that refuse: `t` may not be later than `Retry-After`. There is no `Retry-After` if one of
 * them never admits. Decisions without an answer are left out.
 *
 * @param named - the limits, each with its name and its answer
 * @param allowed - whether the request may go on
 */
export function combinedHeaders(named: readonly Named[], allowed: boolean): Fields {
  const answered = named.filter(([, decision]) => decision.answered)
  if (answered.length === 0) return {}
  const left = binding(named, allowed)
  const headers: Fields = { 'RateLimit-Policy': answered.map(policy).join(', ') }
  if (left.length > 0) headers['RateLimit'] = left.map(remaining).join(', ')
  return { ...headers, ...retryAfterOf(named, allowed) }
}

/**
 * The older headers, which have one limit: of those that refuse the one with the longest wait, else the one with the least
 * remaining.
 *
 * @param unix - the Unix time, in ms
 */
export function legacyHeaders(named: readonly Named[], allowed: boolean, unix: number): Fields {
  const weightOf = ({ retryAfter, remaining }: Headed) => (allowed ? -remaining : (retryAfter ?? Infinity))
  const [first, ...others] = binding(named, allowed).map(([, decision]) => decision)
  if (first === undefined) return {}
  const one = others.reduce((most, other) => (weightOf(other) > weightOf(most) ? other : most), first)
  return {
    'X-RateLimit-Limit': String(one.limit),
    'X-RateLimit-Remaining': String(one.remaining),
    'X-RateLimit-Reset': String(roundUp(unix + one.resetAfter)),
    ...retryAfterOf(named, allowed),
  }
}

/** `Retry-After` of a refusal, unless one of the limits never admits the request. */
export function retryAfterOf(named: readonly Named[], allowed: boolean): Fields {
  const waits = allowed ? [] : binding(named, false).map(([, decision, spread]) => retry(decision, spread))
  return waits.length === 0 || waits.includes(null) ? {} : { 'Retry-After': String(Math.max(...waits.map(Number))) }
}

// A refusal is about those that refuse.
function binding(named: readonly Named[], allowed: boolean): readonly Named[] {
  return named.filter(([, decision]) => decision.answered && (allowed || !decision.allowed))
}

function policy([name, decision]: Named): string {
  const { count = decision.limit, seconds } = quota(decision.limiter)
  const unit = isLease(decision) ? ';qu="concurrent-requests"' : ''
  return `${quoted(name)};q=${Math.min(count, MOST)}${unit}${seconds === undefined ? '' : `;w=${seconds}`}`
}

// A lease has no `t`: it comes free when somebody is done, and nobody knows when.
function remaining([name, decision]: Named): string {
  const wait = isLease(decision) ? null : decision.allowed ? moreAfter(decision) : decision.retryAfter
  return `${quoted(name)};r=${Math.min(decision.remaining, MOST)}${wait === null ? '' : `;t=${roundUp(wait)}`}`
}

/**
 * Ms until more is available after an admission: the reset, or less if nothing remains.
 *
 * If nothing remains of a bucket, more is available when the next request of cost 1 fits. That is when all but `limit - 1` of
 * the limit is available: `3/m` with a reset of 60 s admits the next request after 60 - 2 * 20 s. Of a fixed window, nothing is
 * available before the reset. Of a sliding window something may be, but the reply does not say when.
 */
function moreAfter({ limit, remaining, resetAfter, limiter }: Headed): number {
  if (remaining > 0 || limiter === undefined || factsOf(limiter.name).burst === undefined) return resetAfter
  // The product may exceed 2^53.
  const [others, per, ms] = [BigInt(limit - 1), BigInt(countOf(limiter)), BigInt(periodOf(limiter))]
  const isBatch = 'batch' in limiter && limiter.batch === true
  return resetAfter - Number(isBatch ? (others / per) * ms : (others * ms) / per)
}

function retry(decision: Headed, { most, slot }: Spread = { most: 0, slot: 0 }): number | null {
  if (decision.retryAfter === null) return null
  if (isLease(decision)) return LEASE_RETRY
  const wait = roundUp(decision.retryAfter)
  return decision.retryAfter < SPREAD_FROM ? wait : wait + Math.floor((wait * most * slot) / 16384 + 0.5)
}

function isLease({ limiter }: Headed): boolean {
  return limiter !== undefined && can(limiter, 'early')
}

interface Quota {
  count?: number
  seconds?: number
}

// The units of a calendar in seconds. Months and longer units differ in length.
const UNITS: Readonly<Record<string, number | undefined>> = {
  HOUR: 3600, DAY: 86_400, WEEK: 604_800, MONTH: undefined, QUARTER: undefined, YEAR: undefined,
}

/** How many in which time, in seconds. Nothing if the time is not of whole seconds, or if there is none. */
function quota(limiter: Limiter | undefined): Quota {
  const { count, per } = limiter === undefined ? {} : factsOf(limiter.name)
  if (per === undefined) return count === undefined ? {} : { count: countOf(limiter!) }
  const unit = String(fieldOf(limiter!, per)).toUpperCase()
  const seconds = Object.hasOwn(UNITS, unit) ? UNITS[unit] : periodOf(limiter!) / 1000
  if (seconds === undefined) return { count: countOf(limiter!) }
  return Number.isInteger(seconds) ? { count: countOf(limiter!), seconds } : {}
}

function roundUp(ms: number): number {
  return Math.ceil(ms / 1000)
}

function quoted(name: string): string {
  if (!/^[\x20-\x7e]*$/.test(name)) throw new ConfigurationError(`the name of a limit must be printable ASCII, not '${name}'`)
  return `"${name.replace(/["\\]/g, '\\$&')}"`
}
