/** Limits and policies, checked against the server before the first request. */

import { checkFlag, checkList, known, type Names } from '../call/arguments.js'
import { Call } from '../call/call.js'
import { Limit, type LimitLike } from '../call/limit.js'
import { policyWord, withId } from '../call/questions.js'
import { limiterOf, type LimiterLike } from '../call/rate.js'
import { CallError, ConfigurationError, Unavailable } from '../errors.js'
import { isMisconfigured } from '../decide/failure.js'
import type { Channel, SendOptions } from './channel.js'

/** What is checked. */
export interface ReadyOptions {
  /** Limiters, rates or {@link Limit}s. A lease needs no id. */
  limits?: readonly LimitLike[] | undefined
  /** The names of policies. */
  policies?: readonly string[] | undefined
  /** Whether no answer is an error. Else it is logged. */
  required?: boolean | undefined
}

/** A limit or a policy of the application, under a name. */
export interface Named {
  readonly name: string
  readonly limit?: unknown
  readonly policy?: unknown
}

/** What is checked, for the error, and its call at a key. */
type Check = readonly [what: string, call: (key: string) => Call]

// At the start a connection is made, and nobody waits.
const TIMEOUT = 2000
// Random keys until each node of a cluster has one.
const TRIALS = 2000
const ID = 'ready'
const NAMES: Names<ReadyOptions> = { limits: true, policies: true, required: true }

/** Checks limits and policies against the server. */
export class Readiness {
  readonly #rules: Named[] = []

  /** @param prefix - stands before each key */
  constructor(
    private readonly channel: Channel,
    private readonly prefix: string,
    private readonly send: (call: Call, options: SendOptions) => Promise<unknown>,
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
    checkFlag('required', required)
    const asked = [
      ...limits.map((limit) => this.#limit(limit)),
      ...this.#rules.flatMap((rule) => this.#ruleLimit(rule)),
      ...policies.map((policy) => this.#policy(policyWord(policy), `the policy '${policy}'`)),
      ...this.#rules.flatMap((rule) => this.#rulePolicy(rule)),
    ]
    const checks = asked.length > 0 ? asked : [this.#limit('1/s')]
    if (checks.some(([, call]) => call('k').words.includes('CONCURRENT'))) {
      checks.push(['a lease', (key) => this.#call('RL.RENEW').key(key).value('1ms').value(ID)])
      checks.push(['a lease', (key) => this.#call('RL.RELEASE').key(key).value(ID)])
    }
    let call = this.#call('RL.PEEK')
    try {
      for (const key of await this.#keys()) for (const [what, callAt] of checks) await this.#send((call = callAt(key)), what)
      return true
    } catch (error) {
      if (!(error instanceof Unavailable) || required) throw error
      this.channel.core.log.failed(call, 'not checked', error)
      return false
    }
  }

  // A limiter alone is looked at by RL.PEEK, which takes those that RL.MULTI does not.
  #limit(like: LimitLike): Check {
    if (typeof like === 'object' && like !== null && 'clause' in like) return this.#multi(like)
    const limiter = limiterOf(like)
    const what = `the limit ${[limiter.name, ...limiter.words].join(' ')}`
    return [what, (key) => this.#call('RL.PEEK').key(key).limiter(withId(limiter, ID)).option('COST', 0)]
  }

  #multi({ limiter, cost, shadow }: Limit, rule = ''): Check {
    const asked = new Limit(withId(limiter, ID), { cost, shadow })
    const what = `${rule}the limit ${new Limit(limiter, { cost, shadow }).clause.slice(1).join(' ')}`
    return [what, (key) => this.#call('RL.MULTIPEEK').numbered([key]).option('COST', 0).limits([asked])]
  }

  // What a function returns is not known yet, but the module and the right are. Behind LIMIT a limiter is what RL.MULTI takes.
  #ruleLimit({ name, limit }: Named): Check[] {
    if (limit === undefined) return []
    return [this.#multi(new Limit(typeof limit === 'function' ? '1/s' : (limit as LimiterLike)), `rule '${name}': `)]
  }

  #rulePolicy({ name, policy }: Named): Check[] {
    return typeof policy === 'string' ? [this.#policy(policy, `rule '${name}': the policy '${policy}'`)] : []
  }

  #policy(policy: string, what: string): Check {
    return [what, (key) => this.#call('RL.ASKPEEK').key(key).value(policy).option('COST', 0).option('ID', ID)]
  }

  async #send(call: Call, what: string): Promise<void> {
    try {
      await this.send(call, { timeout: Math.max(TIMEOUT, this.channel.settings.timeout) })
    } catch (error) {
      if (error instanceof Unavailable && isMisconfigured(error)) {
        const { kind, reason } = error
        const why = kind === 'module' ? `the server has no module ratelimit (${reason})` : `${what}: the server rejects ${call.command}: ${reason}`
        throw new ConfigurationError(why, { cause: error })
      }
      if (!(error instanceof CallError)) throw error
      // A policy may be for several keys, and says for how many.
      const [, needed] = /needs (\d+) keys/.exec(error.reply) ?? []
      if (needed === undefined) throw new ConfigurationError(reason(error, what), { cause: error })
      const own = call.keys[0]!.slice(this.prefix.length)
      await this.#send(call.more(Array.from({ length: Number(needed) - 1 }, (_, i) => `${own}:${i + 2}`)), what)
    }
  }

  /** A key for each primary: each has its own policies. */
  async #keys(): Promise<string[]> {
    // Before, a cluster's nodes are not known. Why there is no connection is an error of the first call.
    await this.channel.connected(TIMEOUT).catch(() => undefined)
    const { client } = this.channel
    const found = new Map<string | undefined, string>()
    for (let trial = 0; trial < TRIALS && found.size < client.primaries; trial += 1) {
      // With a hash tag, so that further keys share its slot.
      const key = `{ready:${this.channel.runtime.id()}}`
      const owner = client.owner(this.prefix + key)
      if (!found.has(owner)) found.set(owner, key)
    }
    return [...found].sort(([one], [other]) => client.owners.indexOf(one ?? '') - client.owners.indexOf(other ?? '')).map(([, key]) => key)
  }

  #call(command: string): Call {
    return new Call(this.prefix, [command], command.endsWith('PEEK'))
  }
}

function reason({ command, code, reply }: CallError, what: string): string {
  // It is about the caller, and not about the limit.
  if (code === 'NOPERM') return `${what}: the server rejects ${command}: ${reply}`
  return `${what} is wrong: ${reply}`
}
