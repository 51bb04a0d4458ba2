/** What calls of a limiter may be told. */

import { ConfigurationError } from '../errors.js'
import { checkFlag, checkSignal, shown, type Names } from './arguments.js'
import type { HoldOptions } from './call.js'
import { can } from './facts.js'
import { isOpen, span, time } from './settings.js'
import type { TenantOptions } from './tenant.js'
import { durationWord, integerWord, type Duration, type Limiter } from './values.js'

/** What each call may be told. */
export interface CallOptions {
  /** Another time-out than the limiter's, such as `'2s'`. Not for a call that waits. */
  timeout?: Duration | undefined
  /** The same in ms. */
  timeoutMs?: number | undefined
  /** Another choice than the limiter's for when there is no answer. */
  fail?: 'open' | 'closed' | undefined
  /** Gives up, with its reason as the error. A call that waits leaves its line. */
  signal?: AbortSignal | undefined
}

/** What a request does with a cost that does not fit. One of them at most. */
export interface MannerOptions {
  /** Takes what remains, if that is less. `granted` says how much. */
  partial?: boolean | undefined
  /** Admits and charges it, as debt. */
  force?: boolean | undefined
  /** Books ahead: `retryAfter` is the time to wait before acting. A duration is the longest such time. */
  reserve?: boolean | Duration | undefined
}

/** What `RateLimiter.limits` may be told. */
export interface LimitsCallOptions extends CallOptions, Pick<MannerOptions, 'force'> {
  /** What the request costs, from 0 on. 1 by default. 0 looks. */
  cost?: number | undefined
  /** Waits in the server until the request is admitted, at most so long. It takes a connection of its own. */
  wait?: Duration | undefined
  /** With `wait`: waits in front of all calls that are not critical. Leases may then take what is reserved. */
  critical?: boolean | undefined
  /** Holds the charge until it is settled. A `Budget` does this by itself. */
  hold?: HoldOptions | undefined
}

/** What `RateLimiter.limit` may be told. A tenant is for calls that wait, and for leases. */
export interface LimitCallOptions extends LimitsCallOptions, MannerOptions, TenantOptions {}

/** What `RateLimiter.ask` may be told. A tenant is for policies with a limit that is `FAIR`. */
export interface AskCallOptions extends LimitsCallOptions, TenantOptions {
  /** The id of leases, for policies with leases. */
  leaseId?: string | undefined
  /** The keys 2, 3 and so on. */
  keys?: readonly string[] | undefined
  /** Whether the answer has that of each limit. */
  full?: boolean | undefined
}

/** What `RateLimiter.peek` may be told. `keys` and `leaseId` are for policies. */
export type PeekCallOptions = CallOptions & Pick<AskCallOptions, 'cost' | 'keys' | 'leaseId'>

/** What `RateLimiter.explain` may be told. `keys` and `leaseId` are for policies. */
export type ExplainOptions = Omit<PeekCallOptions, 'fail'>

/** How a limit of leases adapts. `capacity` is the most that it can be. */
export interface AdaptOptions {
  /** By how long requests take, too. */
  gradient?: boolean | undefined
  /** The least that the limit can be. One more than what is reserved by default. */
  floor?: number | undefined
  /** The limit at first. 20 by default. */
  start?: number | undefined
  /** By how many percent a failure lowers the limit, from 1 to 90. 10 by default. */
  backoff?: number | undefined
  /** A request that takes longer has failed. */
  slow?: Duration | undefined
}

/** How work ended: well, as in an overload, or in a way that says nothing. */
export type Outcome = 'OK' | 'DROP' | 'IGNORE'

/** A class of errors. */
export type ErrorClass = abstract new (...args: never[]) => unknown

/** Which errors are those of an overload: a class, several, or a function. */
export type Drops = ErrorClass | readonly ErrorClass[] | ((error: unknown) => boolean)

/** A lease: how many at a time, and for how long. A signal that gives up releases it, if it is granted all the same. */
export interface LeaseOptions extends CallOptions, TenantOptions {
  /** The most leases at once. */
  capacity: number
  /** How long it lasts unless it is renewed. */
  ttl: Duration
  /** How much of the capacity it takes. 1 by default. */
  cost?: number | undefined
  /** How much of the capacity is for critical requests only. */
  reserved?: number | undefined
  /** A request that may take what is reserved, and waits in front of those that are not critical. */
  critical?: boolean | undefined
  /** Whether it has a fencing token, `lease.fence`. */
  fence?: boolean | undefined
  /** Waits in the server until there is room, at most so long. */
  wait?: Duration | undefined
  /** The limit adapts from how work ends, at most `capacity`. It needs `drops`, `slow` or `gradient`. */
  adapt?: boolean | AdaptOptions | undefined
  /**
   * With `adapt`: which errors of the work lower the limit, such as time-outs. Other errors change nothing. If a function of the
   * application throws, that is logged, and the caller gets the error of the work.
   */
  drops?: Drops | undefined
  /** Whether it is renewed in the background, each third of the ttl. It is by default. */
  renew?: boolean | undefined
}

/** What `RateLimiter.budget` may be told. */
export interface BudgetOptions {
  /** Longer than the longest work. After it a hold can no longer be settled. 10 minutes by default. */
  ttl?: Duration | undefined
  /** Of a policy: the keys 2, 3 and so on. */
  keys?: readonly string[] | undefined
}

/** What `RateLimiter.release` and `RateLimiter.settle` may be told. */
export interface UndoOptions {
  /** The ttl of the lease or the hold. The call is repeated for at most so long. */
  within: Duration
  /** Whether the call that is undone had an answer, which is the usual case. If not, it may still be executed. */
  certain?: boolean | undefined
}

/** What `RateLimiter.settle` may be told. */
export interface SettleOptions extends UndoOptions {
  /** The actual cost of the limits without one of their own. 1 by default. */
  cost?: number | undefined
}

/** What `RateLimiter.settleAsk` may be told. */
export interface SettleAskOptions extends UndoOptions {
  /** The keys 2, 3 and so on. */
  keys?: readonly string[] | undefined
  /** The id of leases, for policies with leases. */
  leaseId?: string | undefined
}

/** What `RateLimiter.refund` may be told. */
export interface RefundOptions extends CallOptions {
  /** How much is given back, from 0 on. 1 by default. */
  cost?: number | undefined
}

/** The cost as a word, unless it is 1. */
export function costWord({ cost = 1 }: { cost?: number | undefined }, least = 0): string | undefined {
  const word = integerWord('cost', cost, least)
  return cost === 1 ? undefined : word
}

/** The wait, checked, if it is given. A call that waits is charged as a whole, and then. */
export function checkedWait({ wait, cost }: Pick<LimitsCallOptions, 'wait' | 'cost'>, [manner]: readonly string[] = []): Duration | undefined {
  if (wait === undefined) return wait
  span('wait', wait)
  if (manner !== undefined) throw new ConfigurationError(`wait and ${manner.toLowerCase()} exclude each other`)
  if (cost === 0) throw new ConfigurationError('wait needs a cost above 0')
  return wait
}

/** The names of {@link CallOptions}. */
export const OF_CALL: Names<CallOptions> = { timeout: true, timeoutMs: true, fail: true, signal: true }

/** What is told besides the words of a call. */
export interface Told {
  /** Another time-out than the limiter's, in ms. */
  readonly timeout?: number | undefined
  /** Whether it is let through without an answer, if not as the limiter says. */
  readonly isOpen?: boolean | undefined
  readonly signal?: AbortSignal | undefined
}

/** The checked options of a call. */
export function told({ timeout, timeoutMs, fail, signal, wait }: CallOptions & { wait?: Duration | undefined }): Told {
  checkSignal(signal)
  if (timeout === undefined && timeoutMs === undefined && fail === undefined) return { signal }
  const ms = time('timeout', timeout, timeoutMs, undefined)
  if (ms !== undefined && wait !== undefined) throw new ConfigurationError('a call that waits takes no timeout')
  return { timeout: ms, isOpen: fail === undefined ? undefined : isOpen(fail), signal }
}

/** The words of a manner. None: the cost fits, or the request is refused. */
export function mannerWords(options: MannerOptions, limiter?: Limiter): readonly string[] {
  const { partial, force, reserve } = options
  checkFlag('partial', partial)
  checkFlag('force', force)
  if (reserve !== undefined && !/^(true|false|\d)/.test(String(reserve)))
    throw new ConfigurationError(`reserve must be true, or the longest wait such as '2s', not ${shown(reserve)}`)
  const longest = reserve === undefined || typeof reserve === 'boolean' ? [] : ['MAXWAIT', durationWord('reserve', reserve)]
  const chosen = (['partial', 'force', 'reserve'] as const).filter((name) => options[name] !== undefined && options[name] !== false)
  if (chosen.length > 1) throw new ConfigurationError('take one of partial, force and reserve')
  const [name] = chosen
  if (name === undefined) return []
  if (limiter !== undefined && !can(limiter, name)) throw new ConfigurationError(`${limiter.name} takes no ${name}`)
  return [name.toUpperCase(), ...longest]
}

/** Checks that `drops` are a class, a list of classes, or a function. */
export function checkDrops(drops: Drops | undefined): void {
  if (drops === undefined || typeof drops === 'function' || (Array.isArray(drops) && drops.every(isClass))) return
  throw new ConfigurationError(`drops must be a class of errors, a list of them, or a function of the error, not ${shown(drops)}`)
}

/** How work ended that threw this error. Throws what a function of the application throws. */
export function outcomeOf(error: unknown, drops: Drops = []): Outcome {
  if (typeof drops !== 'function' || isClass(drops)) return [drops].flat().some((one) => error instanceof (one as ErrorClass)) ? 'DROP' : 'IGNORE'
  const isDrop: unknown = (drops as (error: unknown) => boolean)(error)
  // A promise is true, whatever it resolves to. It may fail, but nobody waits for it.
  if (isDrop instanceof Promise) {
    isDrop.catch(() => undefined)
    throw new TypeError('drops must not be asynchronous')
  }
  return isDrop ? 'DROP' : 'IGNORE'
}

// A class and a function have one type. The prototype of a class cannot be set, or is that of an error if the class was compiled.
function isClass(value: unknown): boolean {
  if (typeof value !== 'function') return false
  const { value: prototype, writable } = Object.getOwnPropertyDescriptor(value, 'prototype') ?? {}
  return writable === false || prototype instanceof Error
}
