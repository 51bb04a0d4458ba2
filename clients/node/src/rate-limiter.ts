/// <reference lib="esnext.disposable" preserve="true" />

/**
 * Limits for an application: with a time-out, a choice for when there is no answer, leases and budgets.
 *
 * @module
 */

import { randomUUID } from 'node:crypto'
import type { HoldOptions } from './call.js'
import { isCluster, type RedisClient } from './clients/client.js'
import type { Commands } from './commands.js'
import { Core, type RepeatOptions } from './core.js'
import type { Counters } from './counters.js'
import { AskDecision, Decision, MultiDecision } from './decision.js'
import { Refused, Unavailable } from './errors.js'
import { Budget } from './hold.js'
import { Lease } from './lease.js'
import { limitOf } from './limit.js'
import { durationWord, integerWord, textWord, type Duration } from './limiter.js'
import { settings, span, type RateLimiterOptions } from './options.js'
import { isRemembered, Questions } from './questions.js'
import { isRate, limiterOf, type LimiterLike, type LimitLike } from './rate.js'
import * as replies from './replies.js'
import { verify, type VerifyOptions } from './verify.js'

/** What a call may be told. */
export interface LimitCallOptions {
  /** What the request costs, from 0 on. 1 by default. 0 looks. */
  cost?: number | undefined
  /** Waits in the server until the request is admitted, at most so long. It takes a connection of its own. */
  wait?: Duration | undefined
  /** Gives up, with its reason as the error. A call that waits leaves its line. */
  signal?: AbortSignal | undefined
  /** Holds the charge until it is settled. A {@link Budget} does this by itself. */
  hold?: HoldOptions | undefined
}

/** What {@link RateLimiter.ask} may be told. */
export interface AskCallOptions extends LimitCallOptions {
  /** The id of leases, for policies with leases. */
  leaseId?: string | undefined
  /** The keys 2, 3 and so on. */
  keys?: readonly string[] | undefined
  /** Whether the answer has that of each limit. */
  full?: boolean | undefined
}

/** A lease: how many at a time, and for how long. */
export interface LeaseOptions {
  /** The most leases at once. */
  capacity: number
  /** How long it lasts unless it is renewed. */
  ttl: Duration
  /** How much of the capacity it takes. 1 by default. */
  cost?: number | undefined
  /** How much of the capacity is for critical requests only. */
  reserved?: number | undefined
  /** A request that may take what is reserved. */
  critical?: boolean | undefined
  /** Waits in the server until there is room, at most so long. */
  wait?: Duration | undefined
  /** Whether it is renewed in the background, each third of the ttl. It is by default. */
  renew?: boolean | undefined
  /** Gives up. If it is granted all the same, it is released. */
  signal?: AbortSignal | undefined
}

/** What {@link RateLimiter.budget} may be told. */
export interface BudgetOptions {
  /** Longer than the longest work. After it a hold can no longer be settled. 10 minutes by default. */
  ttl?: Duration | undefined
  /** Of a policy: the keys 2, 3 and so on. */
  keys?: readonly string[] | undefined
}

/** What {@link RateLimiter.release} and {@link RateLimiter.settle} may be told. */
export interface UndoOptions {
  /** The ttl of the lease or the hold. The call is repeated for at most so long. */
  within: Duration
  /** Whether the call that is undone had an answer, which is the usual case. If not, it may still be executed. */
  certain?: boolean | undefined
}

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
    call.option('COST', cost(options)).hold(options.hold).wait(wait(options))
    return this.#questions.decide({
      call,
      key,
      read: (reply) => replies.decision(reply, known),
      otherwise: (integers, error) => new Decision(integers, known, error),
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
    call.option('COST', cost(options)).hold(options.hold).wait(wait(options)).limits(limits)
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
    const call = this.#core.call('RL.ASK').key(key).value(textWord('policy', policy)).option('COST', cost(options))
    call.option('ID', options.leaseId).hold(options.hold).wait(wait(options)).flag('FULL', options.full).more(options.keys)
    const { cacheAsk = false } = this.#core.settings.cache ?? {}
    return this.#questions.decide({
      call,
      key,
      read: replies.ask,
      otherwise: (integers, error) => new AskDecision(integers, 0, undefined, undefined, error),
      signal: options.signal,
      cached: cacheAsk && isPlain(options) && options.leaseId === undefined,
    })
  }

  /**
   * What a limiter or a policy would answer. Nothing is charged.
   *
   * @param of - a limiter, a rate, or the name of a policy
   */
  async peek(key: string, of: LimiterLike, options: Pick<AskCallOptions, 'cost' | 'keys' | 'leaseId' | 'signal'> = {}): Promise<Decision> {
    const { signal, leaseId, keys } = options
    if (isPolicy(of)) {
      const call = this.#core.call('RL.ASKPEEK', true).key(key).value(of).option('COST', cost(options)).option('ID', leaseId).more(keys)
      const otherwise = (integers: readonly number[], error: Error) => new AskDecision(integers, 0, undefined, undefined, error)
      return this.#questions.decide({ call, key, read: replies.ask, otherwise, signal, isLook: true })
    }
    const known = limiterOf(of)
    const call = this.#core.call('RL.PEEK', true).key(key).limiter(known).option('COST', cost(options))
    const read = (reply: unknown) => replies.decision(reply, known)
    const otherwise = (integers: readonly number[], error: Error) => new Decision(integers, known, error)
    return this.#questions.decide({ call, key, read, otherwise, signal, isLook: true })
  }

  /**
   * Gives back what was charged and not used. Not for leases, which are released. For an estimate take a {@link budget}.
   *
   * @param limiter - what was charged
   * @param amount - how much, from 0 on
   */
  async refund(key: string, limiter: LimiterLike, amount = 1): Promise<Decision> {
    const known = limiterOf(limiter)
    const call = this.#core.call('RL.REFUND').key(key).limiter(known).value('COST').value(integerWord('amount', amount, 0))
    const read = (reply: unknown) => replies.decision(reply, known)
    const otherwise = (integers: readonly number[], error: Error) => new Decision(integers, known, error)
    this.#questions.forget(key)
    return this.#questions.decide({ call, key, read, otherwise, isLook: true })
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
    const lease = await this.#acquire(key, options)
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
    this.#questions.forget(keys.join(' '))
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
    this.#questions.forget(key)
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

  async #acquire(key: string, options: LeaseOptions): Promise<Lease> {
    const { capacity, critical, renew = true, signal } = options
    const id = randomUUID()
    const ttl = span('ttl', options.ttl)
    const call = this.#core.call('RL.CONCURRENT').key(key).value(integerWord('capacity', capacity, 1)).value(durationWord('ttl', options.ttl, 1))
    call.value(id).option('RESERVED', options.reserved).flag('CRITICAL', critical).option('COST', cost(options, 1)).wait(wait(options))
    const asked = performance.now()
    const undo = () => void this.#core.release([key], id, { within: (call.block ?? 0) + ttl, certain: false })
    let decision: Decision
    try {
      decision = await this.#questions.decide({
        call,
        key,
        read: replies.decision,
        otherwise: (integers, error) => new Decision(integers, undefined, error),
        signal,
      })
    } catch (error) {
      // Given up. It may be granted all the same.
      if (signal?.aborted) undo()
      throw error
    }
    if (decision.answered && !decision.allowed) throw new Refused(decision)
    const { error } = decision
    const maybeTaken = error instanceof Unavailable && error.maybeSent
    if (error !== undefined && !decision.allowed) {
      if (maybeTaken) undo()
      throw error
    }
    // It began when it was admitted: after a wait that is not known, but not before it was asked.
    const since = call.block === undefined ? asked : performance.now()
    return new Lease(this.#core, key, id, decision, { ttl, since, renew, maybeTaken })
  }
}

function cost({ cost }: { cost?: number | undefined }, least = 0): string | undefined {
  return cost === undefined ? undefined : integerWord('cost', cost, least)
}

function wait({ wait }: { wait?: Duration | undefined }): Duration | undefined {
  if (wait !== undefined) span('wait', wait)
  return wait
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
