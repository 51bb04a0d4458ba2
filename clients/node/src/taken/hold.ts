/// <reference lib="esnext.disposable" preserve="true" />

/**
 * Budgets: an estimate is charged, and settled at the actual cost.
 *
 * @module
 */

import { randomUUID } from 'node:crypto'
import { checkFunction, checkSignal, known, type Names } from '../call/arguments.js'
import { Call } from '../call/call.js'
import { checkedWait } from '../call/options.js'
import type { Core } from '../core.js'
import type { AskDecision, Decision } from '../decide/decision.js'
import { Refused, Unavailable } from '../errors.js'
import { integerWord, type Duration, type Limiter } from '../call/values.js'
import { shownKey } from '../decide/log.js'
import { span } from '../call/settings.js'
import { reading, type Questions } from '../decide/asking.js'
import type { Taken } from './taken.js'
import { blocked } from '../wire/waits.js'

/** How an estimate is held. */
export interface HoldCallOptions {
  /** Waits in the server until it is admitted, at most so long. */
  wait?: Duration | undefined
  /** Gives up. */
  signal?: AbortSignal | undefined
}

const NAMES: Names<HoldCallOptions> = { wait: true, signal: true }

/** A charge that is settled at its end. */
export class Hold {
  readonly #settle: (cost: number) => Promise<void>
  #actual: number | undefined
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
  ) {
    this.#settle = settle
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

  #end(unless: number): Promise<void> {
    this.#ended ??= this.#settle(this.#actual ?? unless)
    return this.#ended
  }
}

/** A limiter or a policy on a key, whose cost is known only afterwards. */
export class Budget {
  readonly #core: Core
  readonly #questions: Questions
  readonly #ttl: number

  /** @internal */
  constructor(
    core: Core,
    questions: Questions,
    readonly key: string,
    readonly of: Limiter | string,
    readonly ttl: Duration,
    readonly keys: readonly string[],
  ) {
    this.#core = core
    this.#questions = questions
    this.#ttl = span('ttl', ttl)
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

  async #charge(estimate: number, { wait, signal }: HoldCallOptions): Promise<Hold> {
    integerWord('the estimate', estimate, 1)
    checkSignal(signal)
    signal?.throwIfAborted()
    this.#core.throwIfClosed()
    const id = randomUUID()
    const call = this.#call(id, estimate, checkedWait({ wait }))
    const until = performance.now() + blocked(call) + this.#ttl
    const settle = (certain: boolean) => (cost: number) => this.#settle(id, cost, certain, until - performance.now())
    let decision: Decision
    try {
      decision = await this.#questions.decide<Decision>({
        call,
        key: this.key,
        ...reading(this.of),
        signal,
      })
    } catch (error) {
      // Given up, or its wait was ended by `close`. It may be charged all the same.
      if (signal?.aborted || this.#core.isClosed) void settle(false)(0)
      throw error
    }
    if (decision.answered && !decision.allowed) throw new Refused(decision)
    const { error } = decision
    const maybeCharged = error instanceof Unavailable && error.maybeSent
    if (error !== undefined && !decision.allowed) {
      if (maybeCharged) void settle(false)(0)
      throw error
    }
    if (!decision.answered && !maybeCharged) return new Hold(id, estimate, decision, async () => undefined)
    const taken: Taken = { until, end: () => hold.end() }
    const hold = new Hold(id, estimate, decision, (cost) => {
      this.#core.taken.delete(taken)
      return settle(decision.answered)(cost)
    })
    this.#core.taken.add(taken)
    if (this.#core.isClosed) {
      await hold.cancel()
      this.#core.throwIfClosed()
    }
    return hold
  }

  #call(id: string, estimate: number, wait: Duration | undefined): Call {
    const hold = { id, ttl: this.ttl }
    if (typeof this.of === 'string') {
      return this.#core
        .call('RL.ASK')
        .key(this.key)
        .value(this.of)
        .option('COST', estimate)
        .hold(hold)
        .wait(wait)
        .more(this.keys)
    }
    const call = this.#core.call(`RL.${this.of.name}`).key(this.key).values(this.of.words)
    return call.option('COST', estimate).hold(hold).wait(wait)
  }

  #settle(id: string, cost: number, certain: boolean, within: number): Promise<void> {
    const { commands, repeats } = this.#core
    const { of, key } = this
    const call = typeof of === 'string' ? 'RL.ASKSETTLE' : 'RL.SETTLE'
    const attempt = async () => {
      const decision =
        typeof of === 'string'
          ? await commands.askSettle(key, of, id, cost, { moreKeys: this.keys })
          : await commands.settle(key, id, of, cost)
      return certain || Number((decision as AskDecision).settled) > 0
    }
    return repeats.run({ what: `${call}${shownKey(key)}`, attempt, within })
  }
}
