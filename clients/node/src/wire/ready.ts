/** Limits and policies, checked against the server before the first request. */

import { checkFlag, checkList, known, type Names } from '../call/arguments.js'
import { Call } from '../call/call.js'
import { Limit, type LimitLike } from '../call/limit.js'
import { limiterOf, type LimiterLike } from '../call/rate.js'
import { textWord, type Limiter } from '../call/values.js'
import { CallError, ConfigurationError, Unavailable } from '../errors.js'
import type { Channel } from './channel.js'

/** What is checked. */
export interface ReadyOptions {
  /** Limiters, rates or {@link Limit}s. A lease needs no id. */
  limits?: readonly LimitLike[] | undefined
  /** The names of policies. */
  policies?: readonly string[] | undefined
  /** Whether no answer is an error. Else it is logged. */
  required?: boolean | undefined
}

// At the start a connection is made, and nobody waits.
const TIMEOUT = 2000
// Random keys until each node of a cluster has one.
const TRIALS = 2000
const ID = 'verify'

const NAMES: Names<ReadyOptions> = { limits: true, policies: true, required: true }

/** A limit or a policy of the application, under a name. */
export interface Named {
  readonly name: string
  /** A limit that a function returns is not known before. */
  readonly limit?: unknown
  readonly policy?: unknown
}

/** Checks limits and policies against the server. */
export class Readiness {
  readonly #rules: Named[] = []

  /** @param prefix - stands before each key */
  constructor(
    private readonly channel: Channel,
    private readonly prefix: string,
  ) {}

  /** Adds rules, which are checked with all else. */
  add(rules: readonly Named[]): void {
    this.#rules.push(...rules)
  }

  /** Returns whether the server answered. */
  async check(options: ReadyOptions): Promise<boolean> {
    const { limits = [], policies = [], required = false } = known('options', options, NAMES)
    checkList('limits', limits)
    checkList('policies', policies)
    for (const policy of policies) textWord('policy', policy)
    checkFlag('required', required)
    const parsed = limits.map((like) => (typeof like === 'object' && like !== null && 'clause' in like ? like : limiterOf(like)))
    if (parsed.length + policies.length + this.#rules.length === 0) parsed.push(limiterOf('1/s'))
    let call = new Call('', [])
    const ask = async (limit: Limit | Limiter) => this.#send((call = this.#limitCall(limit)), `the limit ${described(limit)}`)
    const askPolicy = async (policy: string, key: string) => this.#askPolicy((call = this.#call('RL.ASKPEEK').key(key)), policy)
    const all = [...policies, ...this.#rules.flatMap(({ policy }) => (typeof policy === 'string' ? [policy] : []))]
    try {
      for (const limit of parsed) await ask(limit)
      for (const policy of policies) await askPolicy(policy, this.#ownKey())
      for (const rule of this.#rules) await this.#checkRule(rule, ask, askPolicy)
      for (const key of all.length > 0 ? this.#keys() : []) for (const policy of all) await askPolicy(policy, key)
      return true
    } catch (error) {
      if (!(error instanceof Unavailable) || required) throw error
      this.channel.core.log.failed(call, 'not checked', error)
      return false
    }
  }

  // What a function returns is not known yet, but the module and the right are. Behind LIMIT a limiter is what RL.MULTI takes.
  async #checkRule(
    { name, limit, policy }: Named,
    ask: (limit: Limit) => Promise<void>,
    askPolicy: (policy: string, key: string) => Promise<void>,
  ): Promise<void> {
    try {
      if (typeof policy === 'string') await askPolicy(policy, this.#ownKey())
      else await ask(new Limit(typeof limit === 'function' || limit === undefined ? '1/s' : (limit as LimiterLike)))
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error
      throw new ConfigurationError(`rule '${name}': ${error.message}`, { cause: error })
    }
  }

  async #send(call: Call, what: string): Promise<void> {
    try {
      await this.channel.send(call, { timeout: Math.max(TIMEOUT, this.channel.settings.timeout) })
    } catch (error) {
      if (!(error instanceof CallError)) throw error
      throw new ConfigurationError(reason(error, what), { cause: error })
    }
  }

  // A limiter alone is looked at by RL.PEEK, which takes those that RL.MULTI does not.
  #limitCall(limit: Limit | Limiter): Call {
    if (!('clause' in limit)) return withId(this.#call('RL.PEEK').key(this.#ownKey()).limiter(limit), limit).option('COST', 0)
    const { limiter, on = 1, cost, shadow } = limit
    const own = this.#ownKey()
    const call = this.#call('RL.MULTIPEEK').numbered(Array.from({ length: on }, (_, i) => `${own}${i}`))
    call.option('COST', cost === undefined ? 0 : undefined).value('LIMIT').limiter(limiter)
    return withId(call, limiter).value('ON').value(on).option('COST', cost).flag('SHADOW', shadow)
  }

  // A policy may be for several keys, and says for how many.
  async #askPolicy(call: Call, policy: string): Promise<void> {
    const what = `the policy '${policy}'`
    call.value(policy).option('ID', ID)
    try {
      await this.#send(call, what)
    } catch (error) {
      const [, needed] = /needs (\d+) keys/.exec((error as Error).message) ?? []
      if (needed === undefined) throw error
      const own = call.keys[0]!.slice(this.prefix.length)
      await this.#send(call.more(Array.from({ length: Number(needed) - 1 }, (_, i) => `${own}${i}`)), what)
    }
  }

  /** A key for each primary of a cluster that is connected: each has its own policies. */
  #keys(): string[] {
    const { client } = this.channel
    if (client.primaries <= 1) return []
    const found = new Map<string | undefined, string>()
    for (let trial = 0; trial < TRIALS && found.size < client.primaries; trial += 1) {
      const key = this.#ownKey()
      const owner = client.owner(this.prefix + key)
      if (!found.has(owner)) found.set(owner, key)
    }
    return [...found.values()]
  }

  // With a hash tag, so that further keys share its slot.
  #ownKey(): string {
    return `{ratelimit:ready:${this.channel.runtime.id()}}`
  }

  #call(command: string): Call {
    return new Call(this.prefix, [command], true)
  }
}

function reason({ command, code, reply }: CallError, what: string): string {
  if (/^ERR unknown command/i.test(reply)) return `the server has no module ratelimit (${reply})`
  // These are about the caller, and not about the limit.
  if (['NOAUTH', 'WRONGPASS', 'NOPERM'].includes(code)) return `the server rejects ${command}: ${reply}`
  return `${what} is wrong: ${reply}`
}

// The id of a lease stands before its options.
function withId(call: Call, limiter: Limiter): Call {
  const fields = limiter as unknown as { id?: string }
  if (limiter.name === 'CONCURRENT' && fields.id === undefined)
    call.words.splice(call.words.lastIndexOf('CONCURRENT') + 3, 0, ID)
  return call
}

function described(limit: Limit | Limiter): string {
  return 'clause' in limit ? limit.clause.slice(1).join(' ') : [limit.name, ...limit.words].join(' ')
}
