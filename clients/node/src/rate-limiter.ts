/// <reference lib="esnext.disposable" preserve="true" />

/**
 * Limits for an application: with a time-out, a choice for when there is no answer, leases and budgets.
 *
 * @module
 */

import { acquire } from './acquire.js'
import { checkedWait, costWord } from './call-options.js'
import type {
  AskCallOptions,
  BudgetOptions,
  LeaseOptions,
  LimitCallOptions,
  PeekCallOptions,
  UndoOptions,
} from './call-options.js'
import { isCluster, type RedisClient } from './clients/client.js'
import type { Commands } from './commands.js'
import { Core, type RepeatOptions } from './core.js'
import type { Counters } from './counters.js'
import { MultiDecision, type AskDecision, type Decision } from './decision.js'
import { Budget } from './hold.js'
import type { Lease } from './lease.js'
import { limitOf } from './limit.js'
import { integerWord, textWord } from './limiter.js'
import { settings, span, type RateLimiterOptions } from './options.js'
import { isRemembered, Questions, reading } from './questions.js'
import { isRate, limiterOf, type LimiterLike, type LimitLike } from './rate.js'
import * as replies from './replies.js'
import { verify, type VerifyOptions } from './verify.js'

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
  #closed: Promise<void> | undefined

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
    const known = limiterOf(limiter)
    const call = this.#core.call(`RL.${known.name}`).key(key).values(known.words)
    call.option('COST', costWord(options)).hold(options.hold).wait(checkedWait(options))
    return this.#questions.decide({
      call,
      key,
      ...reading(known),
      signal: options.signal,
      cached: isPlain(options) && isRemembered(known),
    })
  }

  /**
   * Asks several limits at once. All admit and are charged, or none is. On a cluster the keys must share a slot.
   *
   * @param keys - the keys. A limit is for all of them, or `on` one
   * @param limits - limiters, rates or {@link Limit}s
   */
  async limits(keys: readonly string[], limits: readonly LimitLike[], options: LimitCallOptions = {}): Promise<MultiDecision> {
    const call = this.#core.call('RL.MULTI').numbered(keys)
    call.option('COST', costWord(options)).hold(options.hold).wait(checkedWait(options)).limits(limits)
    return this.#questions.decide({
      call,
      key: keys.join(' '),
      read: (reply) => replies.multi(reply, limits, keys.length),
      otherwise: (integers, error) => new MultiDecision(integers, [], undefined, error),
      signal: options.signal,
      cached: isPlain(options) && limits.every((limit) => isRemembered(limitOf(limit).limiter)),
    })
  }

  /**
   * Asks a policy, which the server keeps under a name.
   *
   * @param key - whose limits they are
   * @param policy - the name of the policy
   */
  async ask(key: string, policy: string, options: AskCallOptions = {}): Promise<AskDecision> {
    const call = this.#core.call('RL.ASK').key(key).value(textWord('policy', policy)).option('COST', costWord(options))
    call
      .option('ID', options.leaseId)
      .hold(options.hold)
      .wait(checkedWait(options))
      .flag('FULL', options.full)
      .more(options.keys)
    const { cacheAsk = false } = this.#core.settings.cache ?? {}
    return this.#questions.decide({
      call,
      key,
      ...reading(policy),
      signal: options.signal,
      cached: cacheAsk && isPlain(options) && options.leaseId === undefined,
    })
  }

  /**
   * What a limiter or a policy would answer. Nothing is charged.
   *
   * @param of - a limiter, a rate, or the name of a policy
   */
  async peek(key: string, of: LimiterLike, options: PeekCallOptions = {}): Promise<Decision> {
    const { signal, leaseId, keys } = options
    if (isPolicy(of)) {
      const call = this.#core.call('RL.ASKPEEK', true).key(key).value(textWord('policy', of))
      call.option('COST', costWord(options)).option('ID', leaseId).more(keys)
      return this.#questions.decide({ call, key, ...reading(of), signal, isLook: true })
    }
    const known = limiterOf(of)
    const call = this.#core.call('RL.PEEK', true).key(key).limiter(known).option('COST', costWord(options))
    return this.#questions.decide({ call, key, ...reading(known), signal, isLook: true })
  }

  /**
   * Gives back what was charged and not used. Not for leases, which are released. For an estimate take a {@link budget}.
   *
   * @param limiter - what was charged
   * @param amount - how much, from 0 on
   */
  async refund(key: string, limiter: LimiterLike, amount = 1): Promise<Decision> {
    const known = limiterOf(limiter)
    const call = this.#core
      .call('RL.REFUND')
      .key(key)
      .limiter(known)
      .option('COST', integerWord('amount', amount, 0))
    const decision = await this.#questions.decide({ call, key, ...reading(known), isLook: true })
    this.#questions.forget(key)
    return decision
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
    const known = isPolicy(of) ? textWord('policy', of) : limiterOf(of)
    return new Budget(this.#core, this.#questions, key, known, options.ttl ?? '10m', options.keys ?? [])
  }

  /**
   * Ends a lease that {@link limits} or {@link ask} took. {@link lease} does this by itself. Waits at most for the time-out,
   * and never throws: without an answer it is repeated in the background.
   *
   * @param id - the id of the lease
   */
  async release(keys: string | readonly string[], id: string, options: UndoOptions): Promise<void> {
    await this.#core.release([keys].flat(), id, repeated(options))
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
    options: UndoOptions & { cost?: number | undefined },
  ): Promise<void> {
    const { within, certain } = repeated(options)
    const attempt = async () => {
      const { settled = 0 } = await this.commands.multiSettle(keys, id, limits, { cost: options.cost })
      return certain || settled > 0
    }
    await this.#core.repeats.run({ what: `RL.MULTISETTLE of '${keys.join("', '")}'`, attempt, within })
    this.#questions.forget(keys.join(' '), ...keys)
  }

  /** Settles a hold of {@link ask}, as {@link settle} does for limits. */
  async settleAsk(
    key: string,
    policy: string,
    id: string,
    actual: number,
    options: UndoOptions & { keys?: readonly string[] | undefined; leaseId?: string | undefined },
  ): Promise<void> {
    const { within, certain } = repeated(options)
    const attempt = async () => {
      const { leaseId, keys } = options
      const { settled = 0 } = await this.commands.askSettle(key, policy, id, actual, { leaseId, moreKeys: keys })
      return certain || settled > 0
    }
    await this.#core.repeats.run({ what: `RL.ASKSETTLE of '${key}'`, attempt, within })
    this.#questions.forget(key, ...(options.keys ?? []))
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

  /** Tries what is left to be released or settled once more, and ends all connections. */
  close(): Promise<void> {
    this.#closed ??= this.#core.repeats.close().finally(() => this.#core.channel.close())
    return this.#closed
  }

  /** The same as {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

// Whether a refusal says all there is to say.
function isPlain({ cost, wait, hold }: LimitCallOptions): boolean {
  return wait === undefined && hold === undefined && cost !== 0
}

function isPolicy(of: LimiterLike): of is string {
  return typeof of === 'string' && !isRate(of)
}

function repeated({ within, certain = true }: UndoOptions): RepeatOptions {
  return { within: span('within', within), certain }
}
