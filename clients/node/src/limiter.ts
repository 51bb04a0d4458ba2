/// <reference lib="esnext.disposable" preserve="true" />

/**
 * Limits for an application: with a time-out, a choice for when there is no answer, leases and budgets.
 *
 * @module
 */

import { acquire } from './taken/acquire.js'
import { checkFunction, checkSignal, known, type Names } from './call/arguments.js'
import type {
  AskCallOptions,
  BudgetOptions,
  LeaseOptions,
  LimitCallOptions,
  PeekCallOptions,
  UndoOptions,
} from './call/options.js'
import { isCluster, type RedisClient } from './wire/client.js'
import type { Commands } from './commands.js'
import { Core } from './core.js'
import type { Counters } from './decide/counters.js'
import type { AskDecision, Decision, MultiDecision } from './decide/decision.js'
import { Budget } from './taken/hold.js'
import type { Lease } from './taken/lease.js'
import * as asks from './call/questions.js'
import { settings, type RateLimiterOptions } from './call/settings.js'
import { Questions } from './decide/asking.js'
import type { LimiterLike, LimitLike } from './call/rate.js'
import { release, settle, settleAsk, type SettleAskOptions, type SettleOptions } from './taken/undo.js'
import { verify, type VerifyOptions } from './wire/verify.js'

const OF_LEASE: Names<LeaseOptions> = {
  capacity: true,
  ttl: true,
  cost: true,
  reserved: true,
  critical: true,
  wait: true,
  renew: true,
  signal: true,
}
const OF_BUDGET: Names<BudgetOptions> = { ttl: true, keys: true }

/**
 * Limits for an application.
 *
 * It takes the address and the credentials of the given client, and opens connections of its own: with a short time-out, no
 * queue and no retries. So a slow command of the application delays no limit, and a lost call is not charged twice.
 *
 * ```js
 * const limiter = new RateLimiter(redis)
 * const decision = await limiter.limit(`user:${id}`, '10/s')
 * if (!decision.allowed) return response.writeHead(429, decision.headers()).end()
 * ```
 *
 * If the server does not answer, `fail` decides. A wrong call is never let through: it throws {@link CallError}.
 */
export class RateLimiter {
  readonly #core: Core
  readonly #questions: Questions

  /**
   * @param redis - a client of node-redis or ioredis, plain or for a cluster
   * @throws {@link ConfigurationError} if an option is wrong
   */
  constructor(redis: RedisClient, options: RateLimiterOptions = {}) {
    this.#core = new Core(redis, settings(options, isCluster(redis)))
    this.#questions = new Questions(this.#core)
  }

  /**
   * Every command, on the limiter's connections. Errors are thrown: {@link Unavailable} and {@link CallError}. A call with
   * `block` gets a connection of its own.
   */
  get commands(): Commands {
    return this.#core.commands
  }

  /** @internal What the middleware needs besides: the options, the log, and which keys share a node. */
  get core(): Core {
    return this.#core
  }

  /** The counters as they are now. */
  get counters(): Counters {
    return { ...this.#core.channel.counters }
  }

  /**
   * Asks a limit.
   *
   * @param key - whose limit it is, such as `user:1`
   * @param limiter - a limiter, or a rate such as `'10/s'`
   */
  async limit(key: string, limiter: LimiterLike, options: LimitCallOptions = {}): Promise<Decision> {
    return this.#questions.decide(asks.limitQuestion(this.#core, key, limiter, options))
  }

  /**
   * Asks several limits at once. All admit and are charged, or none is. On a cluster the keys must share a slot.
   *
   * @param keys - the keys. A limit is for all of them, or `on` one
   * @param limits - limiters, rates or {@link Limit}s
   */
  async limits(keys: readonly string[], limits: readonly LimitLike[], options: LimitCallOptions = {}): Promise<MultiDecision> {
    return this.#questions.decide(asks.limitsQuestion(this.#core, keys, limits, options))
  }

  /**
   * Asks a policy, which the server keeps under a name.
   *
   * @param key - whose limits they are
   * @param policy - the name of the policy
   */
  async ask(key: string, policy: string, options: AskCallOptions = {}): Promise<AskDecision> {
    return this.#questions.decide(asks.askQuestion(this.#core, key, policy, options))
  }

  /**
   * What a limiter or a policy would answer. Nothing is charged.
   *
   * @param of - a limiter, a rate, or the name of a policy
   */
  async peek(key: string, of: LimiterLike, options: PeekCallOptions = {}): Promise<Decision> {
    return this.#questions.decide(asks.peekQuestion(this.#core, key, of, options))
  }

  /**
   * Gives back what was charged and not used. Not for leases, which are released. For an estimate take a {@link budget}.
   *
   * @param limiter - what was charged
   * @param amount - how much, from 0 on
   */
  async refund(key: string, limiter: LimiterLike, amount = 1): Promise<Decision> {
    return this.#questions.decide(asks.refundQuestion(this.#core, key, limiter, amount))
  }

  /**
   * Works while it holds one of a bounded number of leases.
   *
   * ```js
   * await limiter.lease('reports', { capacity: 5, ttl: '30s' }, async (lease) => { ... })
   * ```
   *
   * The lease is renewed until the work is done, and released on every path. Without an answer of the server and
   * `fail: 'open'` the work is done without a certain lease: `lease.held` is false.
   *
   * @returns what the work returns
   * @throws {@link Refused} if there is no room, {@link Unavailable} if the limiter fails closed, {@link CallError}
   */
  async lease<T>(key: string, options: LeaseOptions, work: (lease: Lease) => T | Promise<T>): Promise<T>
  /** Takes a lease until `release` or the end of an `await using`. */
  async lease(key: string, options: LeaseOptions): Promise<Lease>
  async lease<T>(key: string, options: LeaseOptions, work?: (lease: Lease) => T | Promise<T>): Promise<T | Lease> {
    checkSignal(known('options', options, OF_LEASE).signal)
    if (work !== undefined) checkFunction('work', work)
    const lease = await acquire(this.#core, this.#questions, key, options)
    if (work === undefined) return lease
    try {
      return await work(lease)
    } finally {
      await lease.release()
    }
  }

  /**
   * A limit for work whose cost is known only afterwards.
   *
   * @param of - a limiter, a rate, or the name of a policy
   */
  budget(key: string, of: LimiterLike, options: BudgetOptions = {}): Budget {
    const { ttl = '10m', keys } = known('options', options, OF_BUDGET)
    return new Budget(this.#core, this.#questions, key, asks.policyOrLimiter(of), ttl, asks.checkedMore(keys) ?? [])
  }

  /**
   * Ends a lease that {@link limits} or {@link ask} took. {@link lease} does this by itself. Waits at most for the time-out,
   * and never throws: without an answer it is repeated in the background.
   *
   * @param id - the id of the lease
   */
  async release(keys: string | readonly string[], id: string, options: UndoOptions): Promise<void> {
    await release(this.#core, keys, id, options)
  }

  /**
   * Settles a hold of {@link limits}. {@link budget} does this by itself. Waits at most for the time-out, and never throws:
   * without an answer it is repeated in the background.
   *
   * @param limits - the limits, each with its actual cost, or with `cost` for those without
   * @param id - the id of the hold
   */
  async settle(
    keys: readonly string[],
    limits: readonly LimitLike[],
    id: string,
    options: SettleOptions,
  ): Promise<void> {
    await settle(this.#core, keys, limits, id, options)
  }

  /** Settles a hold of {@link ask}, as {@link settle} does for limits. */
  async settleAsk(
    key: string,
    policy: string,
    id: string,
    actual: number,
    options: SettleAskOptions,
  ): Promise<void> {
    await settleAsk(this.#core, key, policy, id, actual, options)
  }

  /**
   * Checks limits and policies against the server, at a key of its own and without a charge. Call it when the application
   * starts: a limit that is wrong would otherwise throw with the first request.
   *
   * @returns whether the server answered. If not, that is logged
   * @throws {@link ConfigurationError} if the module is missing, or a limit or a policy is wrong; {@link Unavailable} if
   * there is no answer and `required` is set
   */
  verify(options: VerifyOptions = {}): Promise<boolean> {
    return verify(this.#core, options)
  }

  /**
   * Refuses new calls, releases the leases and settles the budgets that are held, and ends all connections. Waits for calls
   * under way; those that wait in the server end. Without an answer a lease ends by its ttl. Stop the work before.
   */
  close(): Promise<void> {
    return this.#core.close()
  }

  /** The same as {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}
