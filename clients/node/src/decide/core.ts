/** What a limiter does with replies and with their lack, without sending anything. */

import type { Call } from '../call/call.js'
import type { Concurrent } from '../call/limiters.js'
import type { Question, Several } from '../call/questions.js'
import type { Settings } from '../call/settings.js'
import type { Limiter } from '../call/values.js'
import { CallError, ConfigurationError, Unavailable } from '../errors.js'
import { Counters } from './counters.js'
import { AskDecision, Decision, LeaseDecision, MultiDecision, type Integers } from './decision.js'
import { isMisconfigured } from './failure.js'
import { Told, type Hooks } from './hooks.js'
import { claimsOf, Insurance, type Claim } from './insurance.js'
import { Log } from './log.js'
import { Refusals } from './refusals.js'
import * as replies from './replies.js'

/** The decision about a limiter, a policy or several limits. */
export type DecisionOf<A> = A extends Several ? MultiDecision : A extends string ? AskDecision : A extends Concurrent ? LeaseDecision : Decision

/** Decides, counts and logs. Times are in ms. */
export class Core {
  readonly counters = new Counters()
  readonly log: Log
  readonly told: Told
  readonly #refusals: Refusals | undefined
  readonly #insurance = new Insurance()

  constructor(private readonly settings: Settings, private readonly now: () => number, hooks: Hooks = {}) {
    this.log = new Log(settings.logger, now)
    this.told = new Told(hooks, this.log)
    this.#refusals = settings.cache === null ? undefined : new Refusals(settings.cache.keys, settings.cache.longest)
  }

  /** The refusal of this question that is remembered, if it still holds. */
  remembered<A>(question: Question<A>, now: number): DecisionOf<A> | undefined {
    const known = question.place && this.#refusals?.find(question.place, now)
    if (known === undefined) return undefined
    this.counters.asked += 1
    this.counters.refused += 1
    this.counters.cached += 1
    return this.#told(question, read(question, known.reply).age(known.age), 0) as DecisionOf<A>
  }

  /** What {@link decided} needs of the moment in which a question is asked. */
  get generation(): number {
    return this.#refusals?.generation ?? 0
  }

  /** The decision in a reply. `asked` is the generation in which it was asked, `since` the time. */
  decided<A>(question: Question<A>, reply: unknown, asked: number, since: number, now: number): DecisionOf<A> {
    const { place, isLook } = question
    const decision = read(question, reply)
    if (!isLook) {
      this.counters.asked += 1
      this.counters[decision.allowed ? 'allowed' : 'refused'] += 1
    }
    if (place !== undefined && !decision.allowed) this.#refusals?.keep(place, reply, decision.retryAfter, now, asked)
    return (isLook ? decision : this.#told(question, decision, now - since)) as DecisionOf<A>
  }

  /** What `fail` says, if there is no answer. `ms` is how long it was waited for. */
  undecided<A>(question: Question<A>, error: Unavailable, isCounted: boolean, ms: number): DecisionOf<A> {
    const { call, about, isOpen } = question
    const { share } = this.settings
    const claims = isOpen === undefined && share ? claimsOf(question, share.processes) : undefined
    if (claims !== undefined) return this.insured(question, claims, error, isCounted, ms)
    const goesOn = this.goesOn(call, error, isCounted, isOpen)
    const decision = otherwise(about, [goesOn ? 0 : 1, 0, 0, 0, 0, ...granted(question, goesOn)], error)
    return (isCounted ? this.#told(question, decision, ms) : decision) as DecisionOf<A>
  }

  /** What the share of this process says, if there is no answer. What is not counted takes nothing of it. */
  insured<A>(question: Question<A>, claims: readonly Claim[], error: Unavailable, isCounted = true, ms = 0): DecisionOf<A> {
    const { call, about } = question
    const five = this.#insurance.take(claims, this.now(), isCounted)
    const decision = otherwise(about, [...five, ...granted(question, five[0] === 0)], error).by('insurance')
    if (isCounted) {
      this.counters.asked += 1
      this.counters[decision.allowed ? 'insuredAllowed' : 'insuredRefused'] += 1
    }
    this.log.failed(call, 'insured', error)
    return (isCounted ? this.#told(question, decision, ms) : decision) as DecisionOf<A>
  }

  /** Throws if nothing says what is decided about a question without an answer. */
  check(question: Question<unknown>): void {
    if (question.isOpen === undefined && this.settings.share !== undefined && claimsOf(question, 1) === undefined) this.checkOtherwise(question.call.command)
  }

  /** Throws if nothing says what is decided without an answer where there is no rate to share. */
  checkOtherwise(what: string): void {
    const { share } = this.settings
    if (share !== undefined && share.otherwise === undefined)
      throw new ConfigurationError(`${what} has no share: give Share the option otherwise, 'open' or 'closed'`)
  }

  /**
   * Whether a request goes on without an answer. Counts it, and writes a line.
   *
   * @param isCounted - false for a look, which is not counted
   * @param isOpen - the choice of this call, if it has one of its own
   */
  goesOn(call: Call, error: Unavailable | CallError, isCounted = true, isOpen = this.settings.isOpen): boolean {
    if (isCounted) {
      this.counters.asked += 1
      this.counters[isOpen ? 'failedOpen' : 'failedClosed'] += 1
    }
    this.log.failed(call, isOpen ? 'failed open' : 'failed closed', error)
    return isOpen
  }

  /** Counts a call that failed. */
  failed(error: unknown): void {
    if (error instanceof CallError) this.counters.wrongCalls += 1
    if (error instanceof Unavailable) this.counters.unavailable += 1
    if (isMisconfigured(error)) this.counters.misconfigured += 1
    this.told.error(error)
  }

  /** Something was given back to these keys, or may have been. */
  gaveBack(keys: readonly string[]): void {
    this.#refusals?.forget(keys)
  }

  #told<D extends Decision>({ call }: Question<unknown>, decision: D, ms: number): D {
    this.told.decision(call, decision, ms)
    return decision
  }
}

function read({ about, isLook, cost: asked = 1 }: Question<unknown>, reply: unknown): Decision {
  const cost = isLook ? 0 : asked
  if (typeof about === 'string') return replies.ask(reply, cost)
  if (isSeveral(about)) return replies.multi(reply, about.limits, about.keys, cost)
  return (isLease(about) ? replies.lease : replies.decision)(reply, about as Limiter, cost)
}

// Without an answer a part is all or nothing.
function granted({ isPartial, cost = 1 }: Question<unknown>, goesOn: boolean): Integers {
  return isPartial ? [goesOn ? cost : 0] : []
}

function otherwise(about: unknown, integers: Integers, error: Unavailable): Decision {
  if (typeof about === 'string') return new AskDecision(integers, 0, undefined, undefined, error)
  if (isSeveral(about)) return new MultiDecision(integers, [], undefined, error)
  return new (isLease(about) ? LeaseDecision : Decision)(integers, about as Limiter, error)
}

function isLease(about: unknown): boolean {
  return (about as Limiter).name === 'CONCURRENT'
}

function isSeveral(about: unknown): about is Several {
  return typeof about === 'object' && about !== null && 'limits' in about
}
