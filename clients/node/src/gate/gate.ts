/**
 * What every web framework needs: decides about a request, and ends what it took when the response is over.
 *
 * ```text
 * request    a shedder, if there is one       1 RL.SHED
 *            all rules with a limit           1 RL.MULTI: all admit and are charged, or none is
 *            each rule with a policy          1 RL.ASK
 *            one refuses                      the others are given back; 429
 * response   leases are released, budgets settled, whether it is finished, failed or left
 * ```
 *
 * A cluster wants the keys of a call in one slot, so a key there is `name:{caller}`. Rules for several callers are asked
 * one after another.
 *
 * @module
 */

import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { known, type Names } from '../call/arguments.js'
import { slot } from '../call/slot.js'
import { ConfigurationError, Unavailable } from '../errors.js'
import { admitted, refused, type Pass } from './passage.js'
import { askedBy, checkRules, named, type Asked, type Rule } from './rules.js'
import { checkShed, ShedStep, type Shed } from './shed.js'
import { MultiStep, PolicyStep, type Spent, type Step } from './steps.js'
import { Limit } from '../call/limit.js'
import type { RateLimiter } from '../limiter.js'
import { within } from '../wire/within.js'

export type { Pass, Refusal } from './passage.js'
export { endWith, type NodeResponse } from './response.js'
export type { LimitRule, PerRequest, PolicyRule, Rule } from './rules.js'
export type { Shed } from './shed.js'
export type { Spent } from './steps.js'

/** What a middleware is made of. */
export interface GateOptions<R> {
  /** Asks the server. Its `fail`, `timeout`, `breaker` and `prefix` are those of the middleware. */
  limiter: RateLimiter
  /** What limits a request. All that are for it must admit. */
  rules: readonly Rule<R>[]
  /** Throws out the least important requests while the workers are overloaded. */
  shed?: Shed<R> | undefined
}

const OF_GATE: Names<GateOptions<never>> = { limiter: true, rules: true, shed: true }
// When the rules are checked again, if the server did not answer, in ms.
const RECHECK = 1000

/** Decides about requests. */
export class Gate<R> {
  readonly #limiter: RateLimiter
  readonly #rules: readonly Rule<R>[]
  readonly #shed: Shed<R> | undefined
  readonly #withLeases = new Set<string>()
  #isChecked = false
  #checking: Promise<void> | undefined
  #checkAt = 0

  /** @throws {@link ConfigurationError} if a rule or the shedder is wrong; it is named */
  constructor(options: GateOptions<R>) {
    const { limiter, rules, shed } = known('options', options, OF_GATE)
    if (typeof limiter?.limits !== 'function') throw new ConfigurationError('limiter must be a RateLimiter')
    checkRules(rules)
    if (shed !== undefined) checkShed(shed)
    if (rules.length === 0 && shed === undefined)
      throw new ConfigurationError('there are neither rules nor a shed, so nothing would be limited')
    this.#limiter = limiter
    this.#rules = rules
    this.#shed = shed
  }

  /**
   * Checks the rules against the server, once. The first request does it, if nobody did before.
   *
   * Limits and policies that functions return are checked when they are asked. If the server does not answer, this is
   * logged, and checked again later.
   *
   * @throws {@link ConfigurationError} if the module is missing, or a limit or a policy is wrong
   */
  ready(): Promise<void> {
    if (this.#isChecked) return Promise.resolve()
    this.#checking ??= this.#check().finally(() => (this.#checking = undefined))
    return this.#checking
  }

  /**
   * Decides about a request.
   *
   * @param spent - where the handler counts, if there is a gate before this one
   * @throws {@link ConfigurationError} or {@link CallError} if a rule is wrong
   */
  async enter(request: R, spent?: Spent | null): Promise<Pass> {
    await this.#readySoon()
    const steps = await this.#steps(request)
    const asked: Step[] = []
    let wait = 0
    for (const step of steps) {
      const decision = await step.ask().catch(async (error: unknown) => {
        await undo(asked)
        throw error
      })
      asked.push(step)
      if (!decision.allowed) {
        await undo(decision.answered ? asked.filter((one) => one !== step) : asked)
        return refused(asked, decision.answered)
      }
      wait = Math.max(wait, decision.retryAfter ?? 0)
      // The other rules would not be answered either. A shedder counts no call without an answer, so the rules are asked.
      if (decision.error instanceof Unavailable && !this.#isCluster && !(step instanceof ShedStep)) break
    }
    const { core } = this.#limiter
    if (asked.length > 0 && core.isClosed) {
      await undo(asked)
      core.throwIfClosed()
    }
    const pass = admitted(asked, spent ?? {}, core.taken)
    // A queue or a booking has named the time at which the request may act.
    if (wait > 0) {
      await sleep(wait)
      core.throwIfClosed()
    }
    return pass
  }

  get #isCluster(): boolean {
    return 'cluster' in this.#limiter.core.channel.client
  }

  async #steps(request: R): Promise<Step[]> {
    const steps: Step[] = []
    if (this.#shed !== undefined) steps.push(new ShedStep(this.#limiter, this.#shed, request))
    const isCluster = this.#isCluster
    const keyOf = (name: string, caller: string) => (isCluster ? `${name}:{${caller}}` : `${name}:${caller}`)
    const asked: Asked[] = []
    for (const rule of this.#rules) {
      const one = await askedBy(rule, request, keyOf)
      if (one !== undefined) asked.push(one)
    }
    const id = randomUUID()
    for (const group of this.#bySlot(asked.filter(({ limiter }) => limiter))) steps.push(new MultiStep(this.#limiter, group, id))
    for (const one of asked.filter(({ policy }) => policy)) steps.push(new PolicyStep(this.#limiter, one, id, this.#withLeases))
    return steps
  }

  #bySlot(asked: readonly Asked[]): Asked[][] {
    const { channel, settings } = this.#limiter.core
    const prefix = channel.keyPrefix + settings.prefix
    const groups = new Map<number, Asked[]>()
    for (const one of asked) {
      const number = this.#isCluster ? slot(prefix + one.key) : 0
      groups.set(number, [...(groups.get(number) ?? []), one])
    }
    return [...groups.values()]
  }

  // The first requests wait until the rules are checked, but not longer than for a connection. What is checked again, because
  // there was no answer, is checked in the background.
  async #readySoon(): Promise<void> {
    if (this.#isChecked || performance.now() < this.#checkAt) return
    const check = this.ready()
    check.catch(() => undefined)
    if (this.#checkAt > 0) return
    const late = new Error()
    await within(check, this.#limiter.core.settings.connectTimeout, undefined, () => late).catch((error: unknown) => {
      if (error !== late) throw error
    })
  }

  async #check(): Promise<void> {
    try {
      for (const rule of this.#rules) await this.#checkRule(rule)
      this.#isChecked = true
    } catch (error) {
      this.#checkAt = 0
      if (!(error instanceof Unavailable)) throw error
      this.#limiter.core.channel.log.warn('verify', `the rules could not be checked: ${error.message}`)
      this.#checkAt = performance.now() + RECHECK
    }
  }

  // A limit of its own would be looked at alone. Behind LIMIT it is what RL.MULTI takes.
  async #checkRule({ name, limit, policy }: Rule<R>): Promise<void> {
    // What a function returns is not known yet, but the module and the right are.
    const limits = limit === undefined ? [] : [new Limit(typeof limit === 'function' ? '1/s' : limit)]
    const policies = typeof policy === 'string' ? [policy] : []
    try {
      await this.#limiter.verify({ limits, policies, required: true })
    } catch (error) {
      throw named(name, error)
    }
  }
}

async function undo(steps: readonly Step[]): Promise<void> {
  await Promise.all(steps.map((step) => step.undo()))
}
