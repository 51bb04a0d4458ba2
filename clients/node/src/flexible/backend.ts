/**
 * `RateLimiterRatelimit`: rate-limiter-flexible's `RateLimiterRedis`, with a command of the module instead of its Lua.
 *
 * Options, methods, results and errors are those of `RateLimiterRedis`. A key is stored in one of two ways:
 *
 * - A *window* of the module. `consume` and `penalty` open and count it by one `RL.FIXEDWINDOW`. This is the fast way.
 * - A *string*, as `RateLimiterRedis` stores it. It holds what a window cannot: a count of 0 or less (`reward`), a window
 *   of another length than the limiter's (`customDuration`, `block`, `set`, `blockDuration`), one without an end
 *   (`duration: 0`), a very large count, and what a script of the caller writes (`customIncrTtlLuaScript`).
 *
 * A call that needs a string runs a script. In one step it turns a window into the string with the same count and end,
 * and runs the library's own Lua on it. So the result is always that of `RateLimiterRedis`. The key becomes a window
 * again when it opens next.
 *
 * An example with 5 points per 10 s:
 *
 *     0 s   consume(k)                RL.FIXEDWINDOW      window, count 1, ends at 10 s
 *     3 s   reward(k, 3)              window to string    string, count -2, ends at 10 s
 *     4 s   consume(k)                the library's Lua   string, count -1, ends at 10 s
 *     12 s  consume(k)                RL.FIXEDWINDOW      window, count 1, ends at 22 s
 */

import { RateLimiterRedis } from 'rate-limiter-flexible'
import type { IRateLimiterRedisOptions } from 'rate-limiter-flexible'
import { real } from '../runtime.js'
import { StringKeys } from './keys.js'
import { rawSender, type RawSender } from './send.js'
import { FROM_STRING, LARGEST_COUNT, NEVER_ENDS, Script, afterWindow } from './scripts.js'

/** Points in this window, and the ms until its end: -1 for never, -2 for no key. */
type Stored = [points: number, ms: number]

/** What `RateLimiterRedis` has, and its types do not show. */
interface Internals {
  client: unknown
  _incrTtlLuaScript: string
  _isRedisReady(rlKey: string, isReadonly: boolean): boolean
  _upsert(rlKey: string, points: number | string, msDuration: number, forceExpire?: boolean): Promise<unknown>
  _get(rlKey: string): Promise<unknown>
  _delete(rlKey: string): Promise<boolean>
}

const Original = RateLimiterRedis as unknown as new (options: IRateLimiterRedisOptions) => RateLimiterRedis & Internals

// Larger costs take the way of a string. So the sum of a window stays far below LARGEST_COUNT.
const LARGEST_COST = 1e12
// The longest window of the module, in seconds: 100 years.
const LONGEST = 3153600000

/**
 * A drop-in for `RateLimiterRedis` of rate-limiter-flexible 11: same options, methods and results.
 *
 * `storeClient` is a client of ioredis 5 or 6 (`Redis`, `Cluster`) or of node-redis 5 or 6 (`createClient`,
 * `createCluster`, `createClientPool`, `createSentinel`). A `keyPrefix` of the client is honoured. `useRedisPackage` need
 * not be set. The server needs the module; without it calls are rejected, or go to the `insuranceLimiter`.
 *
 * If `duration` is changed while a window is open, the window gets the new length with the next call.
 *
 * @throws Error if an option is wrong, as `RateLimiterRedis` does, and for `useRedis3AndLowerPackage`.
 */
export class RateLimiterRatelimit extends Original {
  readonly #send: RawSender
  readonly #strings = new StringKeys()
  readonly #hasOwnScript: boolean
  readonly #count: Script
  readonly #countWithoutEnd = new Script(afterWindow(NEVER_ENDS))
  readonly #read = new Script(FROM_STRING)

  constructor(options: IRateLimiterRedisOptions) {
    if (options.useRedis3AndLowerPackage) throw new Error('useRedis3AndLowerPackage is not supported')
    super(isNodeRedis(options.storeClient) ? { ...options, useRedisPackage: true } : options)
    this.#send = rawSender(this.client)
    this.#hasOwnScript = Boolean(options.customIncrTtlLuaScript)
    this.#count = new Script(afterWindow(this._incrTtlLuaScript))
  }

  /** @internal */
  override async _upsert(rlKey: string, points: number | string, msDuration: number, forceExpire = false) {
    // The original has the words for what is no integer, and for a client that is not connected.
    if (!isInteger(points) || !this._isRedisReady(rlKey, false)) {
      return super._upsert(rlKey, points, msDuration, forceExpire)
    }
    // As in the original: a fraction of a second is dropped, and less than a second means without end.
    const seconds = Math.floor(msDuration / 1000)
    if (forceExpire) {
      const asked = real.now()
      const written = await super._upsert(rlKey, points, msDuration, forceExpire)
      this.#strings.add(rlKey, asked, seconds > 0 ? seconds * 1000 : -1)
      return written
    }
    const cost = Number(points)
    const isPlain = seconds === this.#seconds && cost > 0 && cost <= LARGEST_COST && !this.#hasOwnScript
    if (isPlain && !this.#strings.has(rlKey)) {
      const counted = await this.#window(rlKey, 'RL.FIXEDWINDOW', [], seconds, ['FORCE', 'COST', String(cost)])
      if (counted) return counted
    }
    const script = seconds > 0 ? this.#count : this.#countWithoutEnd
    return this.#string(rlKey, script, [points, seconds, this.points, this.duration])
  }

  /** @internal */
  override async _get(rlKey: string) {
    if (!this._isRedisReady(rlKey, true)) return super._get(rlKey)
    const seconds = this.#seconds
    if (seconds !== undefined && !this.#strings.has(rlKey)) {
      const found = await this.#window(rlKey, 'RL.PEEK', ['FIXEDWINDOW'], seconds, ['COST', '0'])
      if (found) return found[0] > 0 ? found : null
    }
    const found = await this.#string(rlKey, this.#read, [])
    return found[1] === -2 ? null : found
  }

  /** @internal */
  override _delete(rlKey: string) {
    this.#strings.delete(rlKey)
    return super._delete(rlKey)
  }

  /** The length of the limiter's windows, if the module has windows of this length. */
  get #seconds(): number | undefined {
    const seconds = Math.floor(this.duration)
    return seconds > 0 && seconds <= LONGEST ? seconds : undefined
  }

  /** Sends a command to the window of the key. `undefined` if the key is a string. */
  async #window(rlKey: string, command: string, limiter: string[], seconds: number, options: string[]): Promise<Stored | undefined> {
    const words = [...limiter, LARGEST_COUNT, `${seconds}s`, ...options]
    try {
      const [, limit, remaining, , reset] = (await this.#send(rlKey, command, [], words)).map(Number)
      return [limit! - remaining!, reset!]
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith('WRONGTYPE'))) throw error
      return undefined
    }
  }

  /** Runs a script, and remembers until when the key is a string. */
  async #string(rlKey: string, script: Script, words: unknown[]): Promise<Stored> {
    const asked = real.now()
    const [points, ms, isWindow] = (await script.run(this.#send, rlKey, words.map(String))).map(Number)
    if (isWindow) this.#strings.delete(rlKey)
    else this.#strings.add(rlKey, asked, ms!)
    return [points!, ms!]
  }
}

/** Whether this is a client of node-redis, and not of ioredis. */
function isNodeRedis(client: unknown): boolean {
  const has = (method: string) => typeof (client as Record<string, unknown> | undefined)?.[method] === 'function'
  return has('sendCommand') && !has('defineCommand')
}

function isInteger(points: number | string): boolean {
  return typeof points === 'string' ? /^[1-9][0-9]*$/.test(points) : Number.isInteger(points)
}
