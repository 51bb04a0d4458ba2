/**
 * The options of a limiter, checked.
 *
 * @module
 */

import { ConfigurationError } from './errors.js'
import { integerWord, milliseconds, type Duration } from './limiter.js'
import type { Logger } from './log.js'

/** How a {@link RateLimiter} works. Wrong values are a {@link ConfigurationError}. */
export interface RateLimiterOptions {
  /** Stands before each key, behind the `keyPrefix` of the client. */
  prefix?: string | undefined
  /** Without an answer: `open` lets requests through, `closed` does not. `open` by default. */
  fail?: 'open' | 'closed' | undefined
  /** How long a call may take. 100 ms by default. */
  timeout?: Duration | undefined
  /** How long the first connection may take; calls wait for it so long. 1 s by default. */
  connectTimeout?: Duration | undefined
  /** After `failures` in a row (5) the server is not asked for `cooldown` (1 s). `null`: no breaker. */
  breaker?: { failures?: number | undefined; cooldown?: Duration | undefined } | null | undefined
  /** Answers refused calls from memory until they may be admitted. Off by default. */
  cache?: RefusalCacheOptions | null | undefined
  /** On a cluster: `peek` and `verify` ask replicas. They may lag behind. */
  readFromReplicas?: boolean | undefined
  /** Takes the lines of the log. `console.warn` by default. */
  logger?: Logger | undefined
}

/** How refusals are remembered. */
export interface RefusalCacheOptions {
  /** The most keys; the one that was used longest ago goes first. 10,000 by default. */
  keys?: number | undefined
  /** The longest time that a refusal is remembered. 60 s by default. */
  longest?: Duration | undefined
  /** Remember refusals of policies too. Not if a policy holds leases or penalties. */
  cacheAsk?: boolean | undefined
}

/** Checked options. Times are in ms. */
export interface Settings {
  prefix: string
  isOpen: boolean
  timeout: number
  connectTimeout: number
  breaker: { failures: number; cooldown: number } | null
  cache: { keys: number; longest: number; cacheAsk: boolean } | null
  readFromReplicas: boolean
  logger: Logger
}

const NAMES = new Set(['prefix', 'fail', 'timeout', 'connectTimeout', 'breaker', 'cache', 'readFromReplicas', 'logger'])

/** Checks options. Throws {@link ConfigurationError}. */
export function settings(options: RateLimiterOptions, isCluster: boolean): Settings {
  const wrong = Object.keys(options).find((name) => !NAMES.has(name))
  if (wrong !== undefined) throw new ConfigurationError(`there is no option '${wrong}'`)
  const { prefix = '', fail = 'open', breaker = {}, cache = null, readFromReplicas = false } = options
  const { logger = (line: string) => console.warn(line) } = options
  if (typeof prefix !== 'string') throw new ConfigurationError('prefix must be a text')
  if (fail !== 'open' && fail !== 'closed')
    throw new ConfigurationError(`fail must be 'open' or 'closed', not '${String(fail)}'`)
  if (typeof logger !== 'function') throw new ConfigurationError('logger must be a function that takes a line')
  if (readFromReplicas && !isCluster) throw new ConfigurationError('readFromReplicas is for clients of a cluster')
  return {
    prefix,
    isOpen: fail === 'open',
    timeout: span('timeout', options.timeout ?? 100),
    connectTimeout: span('connectTimeout', options.connectTimeout ?? 1000),
    breaker: breaker && {
      failures: count('breaker.failures', breaker.failures ?? 5),
      cooldown: span('breaker.cooldown', breaker.cooldown ?? 1000),
    },
    cache: cache && {
      keys: count('cache.keys', cache.keys ?? 10_000),
      longest: span('cache.longest', cache.longest ?? 60_000),
      cacheAsk: cache.cacheAsk ?? false,
    },
    readFromReplicas,
    logger,
  }
}

/** A duration of at least 1 ms, in ms. */
export function span(name: string, value: Duration): number {
  const ms = milliseconds(name, value)
  if (ms < 1) throw new ConfigurationError(`${name} must be at least 1 ms`)
  return ms
}

function count(name: string, value: number): number {
  return Number(integerWord(name, value, 1))
}
