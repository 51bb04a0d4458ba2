/** A limit that is answered from memory, and the local limits of a limiter. */

import { known, shown, type Names } from '../call/arguments.js'
import type { Call } from '../call/call.js'
import { isRate, limiterOf, type LimiterLike } from '../call/rate.js'
import { span } from '../call/settings.js'
import { steadyRate, type SteadyRate } from '../call/steady.js'
import { integerWord, type Duration, type Limiter } from '../call/values.js'
import type { Decision } from '../decide/decision.js'
import { placeOf } from '../decide/insurance.js'
import * as replies from '../decide/replies.js'
import { ConfigurationError, Unavailable } from '../errors.js'
import type { Connected } from '../taken/connected.js'
import { Store } from './store.js'

/** How a limit is answered from memory. */
export interface LocalOptions {
  /** For how long what was taken may be spent. 100 ms by default. */
  hold?: Duration | undefined
  /**
   * How many processes ask this limit. Each takes at most this part of it at once, and admits this part of it while the server
   * does not answer.
   */
  processes: number
}

const NAMES: Names<LocalOptions> = { hold: true, processes: true }
const HOLD = '100ms'
/** The most local limits of a limiter. */
export const MOST_KEYS = 10_000

/**
 * A limit that this process answers from memory: it takes tokens ahead, and forgets those that it has not spent in time.
 *
 * While the server answers, all processes together admit in any time t at most C + r * (t + hold), where C is the most that
 * the limit admits at once and r its rate. While it does not answer, each process admits its share.
 *
 * ```js
 * const api = limiter.local('api', '10000/s', { processes: 20 })
 * if ((await api.take()).allowed) …
 * ```
 */
export class Local {
  readonly #to: Connected
  readonly #store: Store
  readonly #claim: { readonly place: string; readonly rate: SteadyRate; readonly processes: number }
  // For the log.
  readonly #call: Call
  // Until the fetch that is under way has ended.
  #arrival: Promise<void> = Promise.resolve()

  /** @internal */
  constructor(
    to: Connected,
    /** The key, without prefixes. */
    readonly key: string,
    readonly limiter: Limiter,
    rate: SteadyRate,
    hold: number,
    processes: number,
  ) {
    this.#to = to
    this.#store = new Store(rate, hold, processes, to.core.counters)
    this.#call = to.call(`RL.${limiter.name}`).key(key)
    this.#claim = { place: placeOf(this.#call.keys[0]!, limiter, processes), rate, processes }
  }

  /**
   * Answers from memory, and never waits. Returns `null` if the server must be asked: {@link take} does it. Answers are shared
   * by calls.
   *
   * @param cost - how much the request takes
   */
  tryTake(cost = 1): Decision | null {
    if (!Number.isSafeInteger(cost) || cost < 1) integerWord('cost', cost, 1)
    const store = this.#store
    const answer = store.tryTake(cost, this.#to.runtime.now())
    const { missing } = store
    if (store.wanted > 0) this.#fetch()
    if (typeof answer === 'object') return this.#told(answer)
    return answer === 'share' ? this.#insured(cost, missing!) : null
  }

  /**
   * Answers from memory, or asks the server.
   *
   * @param cost - how much the request takes. If less is left, the server is asked for this request alone
   * @throws {@link CallError} if the server rejects the call, such as for a key of another type
   */
  async take(cost = 1): Promise<Decision> {
    integerWord('cost', cost, 1)
    const store = this.#store
    for (let waits = 0; ; waits += 1) {
      const answer = store.take(cost, this.#to.runtime.now(), waits)
      const { missing } = store
      if (store.wanted > 0) this.#fetch()
      if (typeof answer === 'object') return this.#told(answer)
      if (answer === 'share') return this.#insured(cost, missing!)
      if (answer === 'ask') return this.#ask(cost)
      await this.#arrival
    }
  }

  /** @internal Gives back what a decision has admitted, because the request does not go on. Never throws. */
  async giveBack(cost: number, decision: Decision): Promise<void> {
    this.#store.giveBack(cost, decision, this.#to.runtime.now())
    if (decision.source !== 'server' || !decision.allowed) return
    const { call } = this.#to.questions.refund(this.key, this.limiter, { cost })
    await this.#to.giveBack(call)
  }

  #fetch(): void {
    const { runtime } = this.#to
    const batch = this.#store.wanted
    this.#store.wanted = 0
    const sent = runtime.now()
    const call = this.#to.questions.limit(this.key, this.limiter, { cost: batch }).call.flag('PARTIAL', true)
    this.#arrival = this.#to
      .send(call)
      .then((reply) => this.#store.fetched(replies.decision(reply, this.limiter), batch, sent, runtime.now()))
      // After an error reply those that wait ask directly, and get the error. So do they if the limiter is closed.
      .catch((error: unknown) => this.#store.ended(error instanceof Unavailable ? error : undefined))
  }

  // The application may listen to decisions.
  #told(decision: Decision): Decision {
    this.#to.core.told.decision(this.#call, decision, 0)
    return decision
  }

  async #ask(cost: number): Promise<Decision> {
    const { core, questions, runtime } = this.#to
    const question = questions.limit(this.key, this.limiter, { cost })
    const { generation } = core
    const since = runtime.now()
    let outcome: Decision | Unavailable | undefined
    try {
      const reply = await this.#to.send(question.call)
      outcome = core.decided(question, reply, generation, since, runtime.now())
      return outcome
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      outcome = error
      return this.#insured(cost, error)
    } finally {
      this.#store.asked(outcome, runtime.now())
    }
  }

  #insured(cost: number, missing: Unavailable): Decision {
    return this.#to.core.insured({ call: this.#call, about: this.limiter }, [{ ...this.#claim, cost }], missing)
  }
}

/** The local limits of a limiter, of which it keeps 10,000. The one that was asked for least recently goes first. */
export class Locals {
  readonly #known = new Map<string, Local>()

  constructor(private readonly to: Connected) {}

  /** The local limit of these arguments, always the same. */
  find(key: string, limit: LimiterLike, options: LocalOptions): Local {
    const { hold, processes } = known('options', options, NAMES, ['processes'])
    const [limiter, rate, ms] = localLimit(limit, hold)
    integerWord('processes', processes, 1)
    const asked = JSON.stringify([key, limiter.name, limiter.words, ms, processes])
    const found = this.#known.get(asked) ?? new Local(this.to, key, limiter, rate, ms, processes)
    this.#known.delete(asked)
    this.#known.set(asked, found)
    const [oldest] = this.#known.keys()
    if (this.#known.size > MOST_KEYS && oldest !== undefined) this.#known.delete(oldest)
    return found
  }
}

/** A limiter, its rate and the ms of `hold`, if it can be answered locally. */
export function localLimit(limit: LimiterLike, hold: Duration = HOLD): readonly [Limiter, SteadyRate, number] {
  if (typeof limit === 'string' && !isRate(limit))
    throw new ConfigurationError(`the policy ${shown(limit)} cannot be answered locally, since RL.ASK has no PARTIAL`)
  const limiter = limiterOf(limit)
  const rate = steadyRate(limiter)
  const isBatch = 'batch' in limiter && limiter.batch === true
  if (rate === undefined || (limiter.name !== 'GCRA' && limiter.name !== 'TOKENBUCKET') || isBatch)
    throw new ConfigurationError(`${limiter.name}${isBatch ? ' with batch' : ''} cannot be answered locally: only a Gcra, or a TokenBucket without batch`)
  const ms = span('hold', hold)
  if (rate.most * rate.period < rate.count * ms) {
    const came = Math.floor((rate.count * ms) / rate.period)
    throw new ConfigurationError(`hold is too long: ${came} come in within ${hold}, but the limit is ${rate.most} at once`)
  }
  return [limiter, rate, ms]
}
