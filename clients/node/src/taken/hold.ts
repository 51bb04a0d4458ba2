/// <reference lib="esnext.disposable" preserve="true" />

/** Budgets: an estimate is charged, and settled at the actual cost. */

import { checkFunction, known, type Names } from '../call/arguments.js'
import { checkKey } from '../call/call.js'
import { settleAsk, settleOne } from '../call/endings.js'
import { can } from '../call/facts.js'
import { OF_CALL, type BudgetOptions, type CallOptions } from '../call/options.js'
import { checkedMore, policyOrLimiter } from '../call/questions.js'
import type { LimiterLike } from '../call/rate.js'
import { span } from '../call/settings.js'
import { OF_TENANT, type TenantOptions } from '../call/tenant.js'
import { integerWord, type Duration, type Limiter } from '../call/values.js'
import type { Decision } from '../decide/decision.js'
import { ConfigurationError } from '../errors.js'
import { blocked } from '../wire/waits.js'
import type { Connected } from './connected.js'
import type { EndingOptions } from './endings.js'
import type { Endable } from './taken.js'

/** How an estimate is held. */
export interface HoldCallOptions extends CallOptions, TenantOptions {
  /** Waits in the server until it is admitted, at most so long. */
  wait?: Duration | undefined
  /** With `wait`: waits in front of all calls that are not critical. */
  critical?: boolean | undefined
}

const NAMES: Names<HoldCallOptions> = { wait: true, critical: true, ...OF_CALL, ...OF_TENANT }

/** A charge that is settled at its end. */
export class Hold {
  readonly #settle: (cost: number) => Promise<void>
  readonly #note: (why: string) => void
  #actual: number | undefined
  #closedAt: number | undefined
  #ended: Promise<void> | undefined

  /** @internal */
  constructor(
    /** The id under which it is held. */
    readonly id: string,
    /** What was charged for now. */
    readonly estimate: number,
    /** What the server replied. */
    readonly decision: Decision,
    settle: (cost: number) => Promise<void>,
    note: (why: string) => void = () => {},
  ) {
    this.#settle = settle
    this.#note = note
  }

  /** Whether the server has said that the estimate is held. */
  get held(): boolean {
    return this.decision.answered && this.decision.allowed
  }

  /**
   * Records the actual cost, from 0 on. Nothing is sent before the end; the last one counts.
   *
   * @throws {@link ConfigurationError} if it is no whole number from 0 on
   */
  settle(actual: number): void {
    integerWord('the actual cost', actual, 0)
    this.#actual = actual
  }

  /**
   * Settles: at what was recorded, or else at the estimate. Waits at most for the limiter's time-out, and never throws: a
   * settlement without an answer is repeated in the background.
   */
  end(): Promise<void> {
    return this.#end(this.estimate)
  }

  /** Settles what failed: at what was recorded, or else at 0. */
  cancel(): Promise<void> {
    return this.#end(0)
  }

  /** The same as {@link end}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.end()
  }

  /** @internal Settles because the limiter closes. */
  close(): Promise<void> {
    this.#closedAt = this.#actual ?? this.estimate
    return this.end()
  }

  #end(unless: number): Promise<void> {
    const cost = this.#actual ?? unless
    if (this.#closedAt !== undefined && this.#closedAt !== cost) this.#note(`the limiter has settled ${this.#closedAt}, not ${cost}`)
    this.#ended ??= this.#settle(cost)
    return this.#ended
  }
}

const OF_BUDGET: Names<BudgetOptions> = { ttl: true, keys: true }

/** A limiter or a policy on a key, whose cost is known only afterwards. */
export class Budget {
  readonly #to: Connected
  readonly of: Limiter | string
  readonly ttl: Duration
  readonly keys: readonly string[]

  /** @internal */
  constructor(to: Connected, readonly key: string, of: LimiterLike, options: BudgetOptions) {
    const { ttl = '10m', keys } = known('options', options, OF_BUDGET)
    this.#to = to
    checkKey(key)
    this.of = policyOrLimiter(of)
    if (typeof this.of !== 'string') {
      if (keys !== undefined) throw new ConfigurationError('only a policy has more keys')
      const { name } = this.of
      if (!can(this.of, 'hold')) throw new ConfigurationError(`${name} cannot be held, so it is no budget${name === 'CONCURRENT' ? ': a lease is lease()' : ''}`)
    }
    this.ttl = ttl
    this.keys = checkedMore(keys) ?? []
    span('ttl', ttl)
  }

  /**
   * Charges an estimate until the work is done.
   *
   * ```js
   * await budget.hold(800, async (hold) => {
   *   const answer = await model.ask(question)
   *   hold.settle(answer.tokens)
   * })
   * ```
   *
   * Left normally without a settlement, the estimate stands. Left by an error without one, it is 0. Without an answer of
   * the server and `fail: 'open'`, the work is done, and it is settled all the same: the charge may come later.
   *
   * @param estimate - the most that it is expected to cost, from 1 on
   * @returns what the work returns
   * @throws {@link Refused} if it does not fit, {@link Unavailable} if the limiter fails closed, {@link CallError}
   */
  async hold<T>(estimate: number, work: (hold: Hold) => T | Promise<T>): Promise<T>
  async hold<T>(estimate: number, options: HoldCallOptions, work: (hold: Hold) => T | Promise<T>): Promise<T>
  /** Charges an estimate until `end`, `cancel` or the end of an `await using`. */
  async hold(estimate: number, options?: HoldCallOptions): Promise<Hold>
  async hold<T>(
    estimate: number,
    first: HoldCallOptions | ((hold: Hold) => T | Promise<T>) = {},
    second?: (hold: Hold) => T | Promise<T>,
  ): Promise<T | Hold> {
    const [options, work] = typeof first === 'function' ? [{}, first] : [first, second]
    if (work !== undefined) checkFunction('work', work)
    if (typeof first === 'function' && second !== undefined) throw new ConfigurationError('the options come before the work: hold(estimate, options, work)')
    const hold = await this.#charge(estimate, known('options', options, NAMES))
    if (work === undefined) return hold
    let result: T
    try {
      result = await work(hold)
    } catch (error) {
      await hold.cancel()
      throw error
    }
    await hold.end()
    return result
  }

  async #charge(estimate: number, told: HoldCallOptions): Promise<Hold> {
    const { tenant } = told
    integerWord('the estimate', estimate, 1)
    const { runtime } = this.#to
    const id = runtime.id()
    const options = { ...told, cost: estimate, hold: { id, ttl: this.ttl } }
    const { questions } = this.#to
    const question =
      typeof this.of === 'string'
        ? questions.ask(this.key, this.of, { ...options, keys: this.keys })
        : questions.limit(this.key, this.of, options)
    const until = runtime.now() + blocked(question.call) + span('ttl', this.ttl)
    const settled = (cost: number, certain: boolean, isGivenUp = false) =>
      this.#settle(id, cost, tenant, { certain, isGivenUp, ttl: until - runtime.now() })
    const decision: Decision = await this.#to.take<Limiter | string>(question, (isGivenUp) => void settled(0, false, isGivenUp))
    if (decision.error?.maybeSent === false) return new Hold(id, estimate, decision, async () => undefined)
    const taken: Endable = { until, end: () => hold.close() }
    const end = (cost: number) => {
      this.#to.taken.delete(taken)
      return settled(cost, decision.answered)
    }
    const hold = new Hold(id, estimate, decision, end, (why) => this.#to.note(question.call, 'settled when the limiter closed', why))
    this.#to.taken.add(taken)
    if (this.#to.isClosed) {
      await hold.cancel()
      this.#to.throwIfClosed()
    }
    return hold
  }

  #settle(id: string, cost: number, tenant: string | undefined, times: EndingOptions): Promise<void> {
    const { of, key, keys } = this
    const { prefix } = this.#to
    const call = typeof of === 'string' ? settleAsk(prefix, key, of, id, cost, { keys, tenant }) : settleOne(prefix, key, of, id, cost, tenant)
    return this.#to.end(call, times)
  }
}
