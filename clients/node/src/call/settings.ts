/** The options of a limiter, checked. */

import { checkFlag, checkFunction, known, shown, type Names } from './arguments.js'
import { ConfigurationError } from '../errors.js'
import { Share } from './share.js'
import { integerWord, milliseconds, type Duration } from './values.js'

/** Takes a line of the log. */
export type Logger = (line: string) => void

/** How a {@link RateLimiter} works. Wrong values are a {@link ConfigurationError}. */
export interface SettingsOptions {
  /** Stands before each key, behind the `keyPrefix` of the client. */
  prefix?: string | undefined
  /**
   * Without an answer: `open` lets requests through, `closed` does not, and a {@link Share} lets each process admit its share
   * of the limit. `open` by default.
   */
  fail?: 'open' | 'closed' | Share | undefined
  /** How long a call may take, such as `'2s'`. 100 ms by default. */
  timeout?: Duration | undefined
  /** The same in ms. */
  timeoutMs?: number | undefined
  /** How long the first connection may take, such as `'2s'`; calls wait for it so long. 1 s by default. */
  connectTimeout?: Duration | undefined
  /** The same in ms. */
  connectTimeoutMs?: number | undefined
  /** After `failures` in a row (5) the server is not asked for `cooldown` (1 s). `false` or `null`: no breaker. */
  breaker?: BreakerOptions | false | null | undefined
  /** Answers refused calls from memory until they may be admitted. Off by default. */
  cache?: RefusalCacheOptions | false | null | undefined
  /** On a cluster: `peek` and `verify` ask replicas. They may lag behind. */
  readFromReplicas?: boolean | undefined
  /** How many calls wait in the server at once, each on a connection of its own. A further one has no answer. 1,000 by default. */
  maxWaits?: number | undefined
  /** Takes the lines of the log. `console.warn` by default. */
  logger?: Logger | undefined
}

/** When the server is not asked. */
export interface BreakerOptions {
  /** How many calls in a row without an answer open the breaker. 5 by default. */
  failures?: number | undefined
  /** How long the server is then not asked, such as `'2s'`. 1 s by default. */
  cooldown?: Duration | undefined
  /** The same in ms. */
  cooldownMs?: number | undefined
}

/** How refusals are remembered. */
export interface RefusalCacheOptions {
  /** The most keys; the one that was used longest ago goes first. 10,000 by default. */
  keys?: number | undefined
  /** The longest time that a refusal is remembered, such as `'2s'`. 60 s by default. */
  longest?: Duration | undefined
  /** The same in ms. */
  longestMs?: number | undefined
  /** Remember refusals of policies too. Not if a policy holds leases or penalties. */
  cacheAsk?: boolean | undefined
}

/** Checked options. Times are in ms. */
export interface Settings {
  prefix: string
  isOpen: boolean
  share: Share | undefined
  timeout: number
  connectTimeout: number
  breaker: { failures: number; cooldown: number } | null
  cache: { keys: number; longest: number; cacheAsk: boolean } | null
  readFromReplicas: boolean
  maxWaits: number
  logger: Logger
}

const NAMES: Names<SettingsOptions> = {
  prefix: true, fail: true, timeout: true, timeoutMs: true, connectTimeout: true, connectTimeoutMs: true, breaker: true,
  cache: true, readFromReplicas: true, maxWaits: true, logger: true,
}
// Functions to be called, which are not for the core.
const OF_HOOKS = { onDecision: true, onError: true } as const
const OF_BREAKER: Names<BreakerOptions> = { failures: true, cooldown: true, cooldownMs: true }
const OF_CACHE: Names<RefusalCacheOptions> = { keys: true, longest: true, longestMs: true, cacheAsk: true }

/** Checks options. Throws {@link ConfigurationError}. */
export function settings(options: SettingsOptions, isCluster: boolean): Settings {
  known('options', options, { ...NAMES, ...OF_HOOKS })
  const { prefix = '', fail = 'open', breaker = {}, cache = null, readFromReplicas = false, maxWaits = 1000 } = options
  const { timeout, timeoutMs, connectTimeout, connectTimeoutMs, logger = (line: string) => console.warn(line) } = options
  if (typeof prefix !== 'string') throw new ConfigurationError(`prefix must be a text, not ${shown(prefix)}`)
  const share = fail instanceof Share ? fail : undefined
  const plain = fail instanceof Share ? (fail.otherwise ?? 'closed') : fail
  if (plain !== 'open' && plain !== 'closed') throw new ConfigurationError(`fail must be 'open' or 'closed', or a Share, not ${shown(fail)}`)
  checkFunction('logger', logger)
  checkFlag('readFromReplicas', readFromReplicas)
  if (readFromReplicas && !isCluster) throw new ConfigurationError('readFromReplicas is for clients of a cluster')
  return {
    prefix,
    isOpen: isOpen(plain),
    share,
    timeout: time('timeout', timeout, timeoutMs, 100),
    connectTimeout: time('connectTimeout', connectTimeout, connectTimeoutMs, 1000),
    breaker: isOff(breaker) ? null : breakerSettings(breaker),
    cache: isOff(cache) ? null : cacheSettings(cache),
    readFromReplicas,
    maxWaits: count('maxWaits', maxWaits),
    logger,
  }
}

function isOff(value: unknown): value is false | null {
  return value === false || value === null
}

function breakerSettings(breaker: BreakerOptions): NonNullable<Settings['breaker']> {
  const { failures = 5, cooldown, cooldownMs } = known('breaker', breaker, OF_BREAKER)
  return { failures: count('breaker.failures', failures), cooldown: time('breaker.cooldown', cooldown, cooldownMs, 1000) }
}

function cacheSettings(cache: RefusalCacheOptions): NonNullable<Settings['cache']> {
  const { keys = 10_000, longest, longestMs, cacheAsk = false } = known('cache', cache, OF_CACHE)
  checkFlag('cache.cacheAsk', cacheAsk)
  return { keys: count('cache.keys', keys), longest: time('cache.longest', longest, longestMs, 60_000), cacheAsk }
}

/** Whether requests are let through without an answer. */
export function isOpen(fail: 'open' | 'closed'): boolean {
  if (fail !== 'open' && fail !== 'closed') throw new ConfigurationError(`fail must be 'open' or 'closed', not ${shown(fail)}`)
  return fail === 'open'
}

/** A duration of at least 1 ms, in ms. */
export function span(name: string, value: Duration): number {
  const ms = milliseconds(name, value)
  if (ms < 1) throw new ConfigurationError(`${name} must be at least 1 ms, not ${shown(value)}`)
  return ms
}

/** A time in ms, from its text or its number. A number under the name without `Ms` would not show its unit. */
export function time<T>(name: string, text: Duration | undefined, ms: number | undefined, otherwise: T): number | T {
  if (text !== undefined && ms !== undefined) throw new ConfigurationError(`there is both ${name} and ${name}Ms`)
  if (typeof text === 'number') throw new ConfigurationError(`${name} must be a text such as '2s'; for a number there is ${name}Ms`)
  if (text !== undefined) return span(name, text)
  return ms === undefined ? otherwise : Number(integerWord(`${name}Ms`, ms, 1))
}

function count(name: string, value: number): number {
  return Number(integerWord(name, value, 1))
}
