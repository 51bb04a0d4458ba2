/** What a limiter does with replies and with their lack, without sending anything. */

import type { Call } from '../call/call.js'
import type { Question, Several } from '../call/questions.js'
import type { Settings } from '../call/settings.js'
import type { Limiter } from '../call/values.js'
import { CallError, ConfigurationError, Unavailable } from '../errors.js'
import { Counters } from './counters.js'
import { AskDecision, Decision, MultiDecision, type Integers } from './decision.js'
import { isMisconfigured } from './failure.js'
import { claimsOf, Insurance, type Claim } from './insurance.js'
import { Log } from './log.js'
import { Refusals } from './refusals.js'
import * as replies from './replies.js'

/** The decision about a limiter, a policy or several limits. */
export type DecisionOf<A> = A extends Several ? MultiDecision : A extends string ? AskDecision : Decision

/** Decides, counts and logs. Times are in ms. */
export class Core {
  readonly counters = new Counters()
  readonly log: Log
  readonly #refusals: Refusals | undefined
  readonly #insurance = new Insurance()

  constructor(private readonly settings: Settings, private readonly now: () => number) {
    this.log = new Log(settings.logger, now)
    this.#refusals = settings.cache === null ? undefined : new Refusals(settings.cache.keys, settings.cache.longest)
  }

  /** The refusal of this question that is remembered, if it still holds. */
  remembered<A>(question: Question<A>, now: number): DecisionOf<A> | undefined {
    const known = question.place && this.#refusals?.find(question.place, now)
    if (known === undefined) return undefined
    this.counters.asked += 1
    this.counters.refused += 1
    this.counters.cached += 1
    return read(question.about, known.reply).age(known.age) as DecisionOf<A>
  }

  /** What {@link decided} needs of the moment in which a question is asked. */
  get generation(): number {
    return this.#refusals?.generation ?? 0
  }

  /** The decision in a reply. `asked` is the generation in which it was asked. */
  decided<A>({ about, place, isLook }: Question<A>, reply: unknown, asked: number, now: number): DecisionOf<A> {
    const decision = read(about, reply)
    if (!isLook) {
      this.counters.asked += 1
      this.counters[decision.allowed ? 'allowed' : 'refused'] += 1
    }
    if (place !== undefined && !decision.allowed) this.#refusals?.add(place, reply, decision.retryAfter, now, asked)
    return decision as DecisionOf<A>
  }

  /** What `fail` says, if there is no answer. */
  undecided<A>(question: Question<A>, error: Unavailable, isCounted = !question.isLook): DecisionOf<A> {
    const { call, about } = question
    const { share } = this.settings
    const claims = share && claimsOf(question, share.processes)
    if (claims !== undefined) return this.insured(question, claims, error, isCounted)
    const integers = [this.goesOn(call, error, isCounted) ? 0 : 1, 0, 0, 0, 0]
    return otherwise(about, integers, error) as DecisionOf<A>
  }

  /** What the share of this process says, if there is no answer. What is not counted takes nothing of it. */
  insured<A>({ call, about }: Question<A>, claims: readonly Claim[], error: Unavailable, isCounted = true): DecisionOf<A> {
    const decision = otherwise(about, this.#insurance.take(claims, this.now(), isCounted), error).by('insurance')
    if (isCounted) {
      this.counters.asked += 1
      this.counters[decision.allowed ? 'insuredAllowed' : 'insuredRefused'] += 1
    }
    this.log.failed(call, 'insured', error)
    return decision as DecisionOf<A>
  }

  /** Throws if nothing says what is decided about a question without an answer. */
  check(question: Question<unknown>): void {
    if (this.settings.share !== undefined && claimsOf(question, 1) === undefined) this.checkOtherwise(question.call.command)
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
   */
  goesOn(call: Call, error: Unavailable | CallError, isCounted = true): boolean {
    const { isOpen } = this.settings
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
  }

  /** Something was given back to these keys, or may have been. */
  gaveBack(keys: readonly string[]): void {
    this.#refusals?.forget(keys)
  }
}

function read(about: unknown, reply: unknown): Decision {
  if (typeof about === 'string') return replies.ask(reply)
  if (isSeveral(about)) return replies.multi(reply, about.limits, about.keys)
  return replies.decision(reply, about as Limiter)
}

function otherwise(about: unknown, integers: Integers, error: Unavailable): Decision {
  if (typeof about === 'string') return new AskDecision(integers, 0, undefined, undefined, error)
  if (isSeveral(about)) return new MultiDecision(integers, [], undefined, error)
  return new Decision(integers, about as Limiter, error)
}

function isSeveral(about: unknown): about is Several {
  return typeof about === 'object' && about !== null && 'limits' in about
}
