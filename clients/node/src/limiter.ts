/// <reference lib="esnext.disposable" preserve="true" />

/** Limits for an application: with a time-out, a choice for when there is no answer, leases and budgets. */

import { checkFunction, checkList, known, type Names } from './call/arguments.js'
import * as endings from './call/endings.js'
import type { LimitLike } from './call/limit.js'
import { costWord, outcomeOf } from './call/options.js'
import type {
  AskCallOptions, BudgetOptions, ExplainOptions, LeaseOptions, LimitCallOptions, LimitsCallOptions, Outcome, PeekCallOptions,
  RefundOptions, SettleAskOptions, SettleOptions, UndoOptions,
} from './call/options.js'
import { checkedLease, checkedMore, checkKeysAndLimits, idWord, policyWord } from './call/questions.js'
import type { LimiterLike } from './call/rate.js'
import { settings, span, type SettingsOptions } from './call/settings.js'
import { integerWord } from './call/values.js'
import { Commands } from './commands.js'
import type { Counters } from './decide/counters.js'
import type { AskDecision, Decision, MultiDecision } from './decide/decision.js'
import type { Hooks } from './decide/hooks.js'
import { help } from './decide/replies.js'
import { Locals, type Local, type LocalOptions } from './local/local.js'
import { real, type Runtime } from './runtime.js'
import { Connected } from './taken/connected.js'
import type { EndingOptions } from './taken/endings.js'
import { Budget } from './taken/hold.js'
import { acquire, type Lease } from './taken/lease.js'
import { isCluster, ownClient, type RedisClient } from './wire/clients.js'
import type { OwnClient } from './wire/own.js'
import type { ReadyOptions } from './wire/ready.js'

const OF_UNDO: Names<UndoOptions> = { within: true, certain: true }
const OF_SETTLE: Names<SettleOptions> = { ...OF_UNDO, cost: true }
const OF_SETTLE_ASK: Names<SettleAskOptions> = { ...OF_UNDO, keys: true, leaseId: true }

/** How a {@link RateLimiter} works. Wrong values are a {@link ConfigurationError}. */
export interface RateLimiterOptions extends SettingsOptions, Hooks {}

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
  /** @internal What the middleware needs besides. */
  readonly connected: Connected
  /** @internal */
  readonly locals: Locals
  /**
   * Every command, on the limiter's connections. Errors are thrown: {@link Unavailable} and {@link CallError}. A call with
   * `block` gets a connection of its own.
   */
  readonly commands: Commands

  /**
   * @param redis - a client of node-redis or ioredis: plain, with sentinels, for a cluster, or a pool
   * @throws {@link ConfigurationError} if an option is wrong
   */
  constructor(redis: RedisClient, options: RateLimiterOptions = {}, /** @internal */ { runtime, connect }: Seams = { runtime: real }) {
    const checked = settings(options, connect === undefined && isCluster(redis))
    this.connected = new Connected(connect ?? (() => ownClient(redis, { ...checked, runtime })), checked, runtime, options)
    this.locals = new Locals(this.connected)
    this.commands = new Commands(this.connected, checked.prefix)
  }

  /** The counters as they are now. */
  get counters(): Counters {
    return { ...this.connected.core.counters }
  }

  /**
   * Asks a limit.
   *
   * @param key - whose limit it is, such as `user:1`
   * @param limiter - a limiter, or a rate such as `'10/s'`
   */
  async limit(key: string, limiter: LimiterLike, options: LimitCallOptions = {}): Promise<Decision> {
    return this.connected.decide(this.connected.questions.limit(key, limiter, options))
  }

  /**
   * Asks several limits at once. All admit and are charged, or none is. On a cluster the keys must share a slot.
   *
   * @param keys - the keys. A limit is for all of them, or `on` one
   * @param limits - limiters, rates or {@link Limit}s
   */
  async limits(keys: readonly string[], limits: readonly LimitLike[], options: LimitsCallOptions = {}): Promise<MultiDecision> {
    return this.connected.decide(this.connected.questions.limits(keys, limits, options))
  }

  /**
   * Asks a policy, which the server keeps under a name.
   *
   * @param key - whose limits they are
   * @param policy - the name of the policy
   */
  async ask(key: string, policy: string, options: AskCallOptions = {}): Promise<AskDecision> {
    return this.connected.decide(this.connected.questions.ask(key, policy, options))
  }

  /**
   * What a limiter or a policy would answer. Nothing is charged.
   *
   * @param of - a limiter, a rate, or the name of a policy
   */
  async peek(key: string, of: LimiterLike, options: PeekCallOptions = {}): Promise<Decision> {
    return this.connected.decide(this.connected.questions.peek(key, of, options))
  }

  /**
   * Why a limiter or a policy would admit or refuse a request now, for people: the verdict, and a line for each limit. Nothing is
   * charged or counted. The texts may change with the server.
   *
   * @param of - a limiter, a rate, or the name of a policy
   * @throws {@link CallError}, and {@link Unavailable} without an answer, whatever `fail` says
   */
  async explain(key: string, of: LimiterLike, options: ExplainOptions = {}): Promise<string[]> {
    const { call, ...told } = this.connected.questions.explain(key, of, options)
    return help(await this.connected.send(call, told))
  }

  /**
   * Gives back what was charged and not used. Not for leases, which are released. For an estimate take a {@link budget}.
   *
   * @param limiter - what was charged
   */
  async refund(key: string, limiter: LimiterLike, options: RefundOptions = {}): Promise<Decision> {
    return this.connected.decide(this.connected.questions.refund(key, limiter, options))
  }

  /**
   * Deletes a key with all its limits. A key that is not of the module is an error, and stays.
   *
   * @returns whether there was something
   * @throws {@link CallError}, and {@link Unavailable} without an answer
   */
  async reset(key: string): Promise<boolean> {
    const { connected } = this
    if ((await connected.send(connected.call('RL.INFO').key(key))) === null) return false
    return Number(await connected.send(connected.call('UNLINK').key(key))) === 1
  }

  /**
   * A limit that this process answers from memory: it takes tokens ahead, for `hold`. The same arguments return the same one.
   *
   * ```js
   * const api = limiter.local('api', '10000/s', { processes: 20 })
   * const decision = api.tryTake() ?? (await api.take())
   * ```
   *
   * @param limit - a rate such as `'10000/s'`, a `Gcra`, or a `TokenBucket` without `batch`
   * @throws {@link ConfigurationError} if a value is wrong, or the limit cannot be answered locally
   */
  local(key: string, limit: LimiterLike, options: LocalOptions): Local {
    return this.locals.find(key, limit, options)
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
    checkedLease(options)
    if (work !== undefined) checkFunction('work', work)
    const lease = await acquire(this.connected, key, options)
    if (work === undefined) return lease
    try {
      const result = await work(lease)
      await lease.release()
      return result
    } catch (error) {
      await lease.release(this.#outcomeOf(error, key, options))
      throw error
    }
  }

  // The caller gets the error of the work, also if `drops` throws one.
  #outcomeOf(error: unknown, key: string, { drops }: LeaseOptions): Outcome {
    try {
      return outcomeOf(error, drops)
    } catch (wrong) {
      const call = this.connected.call('RL.CONCURRENT').key(key)
      const why = wrong instanceof Error ? `${wrong.name}: ${wrong.message}` : String(wrong)
      this.connected.note(call, 'drops failed', why)
      return 'IGNORE'
    }
  }

  /**
   * A limit for work whose cost is known only afterwards.
   *
   * @param of - a limiter, a rate, or the name of a policy
   */
  budget(key: string, of: LimiterLike, options: BudgetOptions = {}): Budget {
    return new Budget(this.connected, key, of, options)
  }

  /**
   * Ends a lease that {@link limits} or {@link ask} took. {@link lease} does this by itself. Waits at most for the time-out,
   * and never throws: without an answer it is repeated in the background.
   *
   * @param id - the id of the lease
   */
  async release(keys: string | readonly string[], id: string, options: UndoOptions): Promise<void> {
    const all = [keys].flat()
    checkList('keys', all, 1)
    await this.connected.end(endings.release(this.connected.prefix, all, idWord('id', id)), times(options, OF_UNDO))
  }

  /**
   * Settles a hold of {@link limits}. {@link budget} does this by itself. Waits at most for the time-out, and never throws:
   * without an answer it is repeated in the background.
   *
   * @param limits - the limits, each with its actual cost, or with `cost` for those without
   * @param id - the id of the hold
   */
  async settle(keys: readonly string[], limits: readonly LimitLike[], id: string, options: SettleOptions): Promise<void> {
    const checked = times(options, OF_SETTLE)
    checkKeysAndLimits(keys, limits)
    costWord(options)
    const call = endings.settle(this.connected.prefix, keys, limits, idWord('id', id), options.cost ?? 1)
    await this.connected.end(call, checked)
  }

  /** Settles a hold of {@link ask}, as {@link settle} does for limits. */
  async settleAsk(key: string, policy: string, id: string, cost: number, options: SettleAskOptions): Promise<void> {
    integerWord('cost', cost, 0)
    const checked = times(options, OF_SETTLE_ASK)
    checkedMore(options.keys)
    const call = endings.settleAsk(this.connected.prefix, key, policyWord(policy), idWord('id', id), cost, options)
    await this.connected.end(call, checked)
  }

  /**
   * Checks limits and policies against the server, and the rules of each middleware of this limiter, at a key of its own and
   * without a charge. Call it when the application starts: a limit that is wrong would otherwise throw with the first request.
   *
   * @returns whether the server answered. If not, that is logged
   * @throws {@link ConfigurationError} if the module is missing, or a limit or a policy is wrong; {@link Unavailable} if
   * there is no answer and `required` is set
   */
  async ready(options: ReadyOptions = {}): Promise<boolean> {
    return this.connected.readiness.check(options)
  }

  /**
   * Refuses new calls, releases the leases and settles the budgets that are held, and ends all connections. Waits for calls
   * under way; those that wait in the server end. Without an answer a lease ends by its ttl. Stop the work before.
   */
  close(): Promise<void> {
    return this.connected.close()
  }

  /** The same as {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

/** What a limiter is made on, if not on a client and a process. */
export interface Seams {
  runtime: Runtime
  connect?: () => OwnClient
}

function times<T extends UndoOptions>(options: T, names: Names<T>): EndingOptions {
  const { within, certain = true } = known('options', options, names, ['within'])
  return { ttl: span('within', within), certain }
}
