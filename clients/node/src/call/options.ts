/** What calls of a limiter may be told. */

import type { HoldOptions } from './call.js'
import { integerWord, type Duration } from './values.js'
import { span } from './settings.js'

/** What a call may be told. */
export interface LimitCallOptions {
  /** What the request costs, from 0 on. 1 by default. 0 looks. */
  cost?: number | undefined
  /** Waits in the server until the request is admitted, at most so long. It takes a connection of its own. */
  wait?: Duration | undefined
  /** Gives up, with its reason as the error. A call that waits leaves its line. */
  signal?: AbortSignal | undefined
  /** Holds the charge until it is settled. A `Budget` does this by itself. */
  hold?: HoldOptions | undefined
}

/** What `RateLimiter.ask` may be told. */
export interface AskCallOptions extends LimitCallOptions {
  /** The id of leases, for policies with leases. */
  leaseId?: string | undefined
  /** The keys 2, 3 and so on. */
  keys?: readonly string[] | undefined
  /** Whether the answer has that of each limit. */
  full?: boolean | undefined
}

/** What `RateLimiter.peek` may be told. `keys` and `leaseId` are for policies. */
export type PeekCallOptions = Pick<AskCallOptions, 'cost' | 'keys' | 'leaseId' | 'signal'>

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
export interface RefundOptions {
  /** How much is given back, from 0 on. 1 by default. */
  cost?: number | undefined
}

/** The cost as a word, unless it is 1. */
export function costWord({ cost = 1 }: { cost?: number | undefined }, least = 0): string | undefined {
  const word = integerWord('cost', cost, least)
  return cost === 1 ? undefined : word
}

/** The wait, checked, if it is given. */
export function checkedWait({ wait }: { wait?: Duration | undefined }): Duration | undefined {
  if (wait !== undefined) span('wait', wait)
  return wait
}
