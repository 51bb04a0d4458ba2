/** Decisions: what the server replied, or what stands in for its reply. */

import { ConfigurationError, RateLimitError, type Unavailable } from '../errors.js'
import { combinedHeaders } from './headers.js'
import type { Limiter } from '../call/values.js'

/** The five integers of a reply; a sixth is `granted`. Times are in ms. */
export type Integers = readonly number[]

/** Who decided: the server, the cache of refusals, what was taken ahead, or the share of this process without an answer. */
export type Source = 'server' | 'cache' | 'local' | 'insurance'

/** The answer to a request. */
export class Decision {
  /** Whether the request may go on. */
  readonly allowed: boolean
  /** The most that could ever be admitted at once. Without an answer 0, or that of the share of this process. */
  readonly limit: number
  /** The most that would be admitted right now, after this call. */
  readonly remaining: number
  /**
   * Refused: ms until this very request would be admitted, or `null` for never. For a lease it may be sooner.
   * Admitted: ms to wait before acting. It is 0 unless the request is queued or booked ahead.
   */
  readonly retryAfter: number | null
  /** Ms until the limit is fully reset. */
  readonly resetAfter: number
  /** With `PARTIAL`: how much was granted. */
  readonly granted: number | undefined
  /** What went wrong, if the server did not answer. Then `allowed` is what was chosen for this case. */
  readonly error: Unavailable | undefined
  /** Who decided. `null` if the limiter failed open or closed. */
  readonly source: Source | null
  // Private, so that they are not shown where decisions are printed or compared.
  readonly #limiter: Limiter | undefined
  readonly #cost: number | undefined

  /**
   * @param integers - limited, limit, remaining, retry after (-1 for never), reset after, and perhaps granted
   * @param limiter - what was asked, if it is known
   * @param error - why the server did not answer
   * @param cost - what the call asked for, if it is known
   */
  constructor(integers: Integers, limiter?: Limiter, error?: Unavailable, cost?: number) {
    const [limited = 0, limit = 0, remaining = 0, retryAfter = 0, resetAfter = 0, granted] = integers
    this.allowed = limited === 0
    this.limit = limit
    this.remaining = remaining
    this.retryAfter = retryAfter < 0 ? null : retryAfter
    this.resetAfter = resetAfter
    this.granted = granted
    this.error = error
    this.source = error === undefined ? 'server' : null
    this.#limiter = limiter
    this.#cost = cost
  }

  /** Whether the server decided. */
  get answered(): boolean {
    return this.error === undefined
  }

  /** The limiter that decided, where it is known. The headers name its count and its time. */
  get limiter(): Limiter | undefined {
    return this.#limiter
  }

  /**
   * Whether this call crossed a part of the limit: before it less than that was used, and now it is that or more. So of all
   * callers one may warn.
   *
   * ```js
   * if (decision.crosses(0.8)) warn(`${user} has used 80 % of the limit`)
   * ```
   *
   * A limit that refills may be crossed again. A policy is judged by the limit that binds, and the cost of the call.
   *
   * @param fraction - above 0 and at most 1
   */
  crosses(fraction: number): boolean {
    checkFraction(fraction)
    if (this.error !== undefined || !this.allowed || this.limit === 0) return false
    if (this.#cost === undefined) throw new ConfigurationError('the cost of this call is not known: ask by limit, limits or ask')
    const used = this.limit - this.remaining
    const before = Math.max(0, used - (this.granted ?? this.#cost))
    return before / this.limit < fraction && used / this.limit >= fraction
  }

  /** @internal Says who decided. */
  by(source: Source): this {
    return Object.assign(this, { source })
  }

  /** @internal Lets time pass in which nothing else happens, for an answer from the cache. */
  age(ms: number): this {
    const left = (time: number) => Math.max(0, Math.ceil(time - ms))
    const { retryAfter, resetAfter, each = [] } = this as this & { each?: readonly Decision[] }
    for (const one of each) one.age(ms)
    return Object.assign(this.by('cache'), { retryAfter: retryAfter === null ? null : left(retryAfter), resetAfter: left(resetAfter) })
  }

  /**
   * The headers of an HTTP response: `RateLimit-Policy` and `RateLimit`, and `Retry-After` with a refusal. Seconds are
   * rounded up. There are none if the server did not answer, and no `Retry-After` if the request will never be admitted.
   *
   * @param name - the name of the limit in the headers, of printable ASCII
   * @throws {@link ConfigurationError} if the name has other characters
   */
  headers(name = 'default'): Record<string, string> {
    return combinedHeaders([[name, this]], this.allowed)
  }
}

/** The answer to a lease. */
export class LeaseDecision extends Decision {
  /** With `fence`: the fencing token of the lease. `undefined` if none was taken: no lease has the token 0. */
  readonly fence: number | undefined

  constructor(integers: Integers, limiter?: Limiter, error?: Unavailable, cost?: number) {
    super(integers.slice(0, 5), limiter, error, cost)
    this.fence = integers[5] || undefined
  }
}

/** The answer to a settlement. */
export class SettledDecision extends Decision {
  /** Whether something was held under the id. If not, nothing has changed. */
  readonly settled: boolean

  constructor(integers: Integers, limiter?: Limiter, error?: Unavailable) {
    super(integers.slice(0, 5), limiter, error)
    this.settled = integers[5] === 1
  }
}

/** The answer to a call with several limits: that for all, and one for each limit on each key. */
export class MultiDecision extends Decision {
  /**
   * @param each - the answers of the limits, limits outermost: the first limit on each of its keys, then the next one
   * @param settled - of a settlement: the number of keys that held one of the limits
   */
  constructor(integers: Integers, readonly each: readonly Decision[] = [], readonly settled?: number, error?: Unavailable) {
    super(integers, undefined, error)
  }

  /** Whether this call crossed a part of one of the limits. */
  override crosses(fraction: number): boolean {
    checkFraction(fraction)
    return this.allowed && this.each.some((one) => one.crosses(fraction))
  }
}

/** The answer to a policy. */
export class AskDecision extends Decision {
  /**
   * The number of the limit and key that binds, from 1 on, limits outermost. Refused: the one with the longest wait.
   * Admitted: the one with the least remaining. `null` if there is none.
   */
  readonly binding: number | null

  /**
   * @param binding - the number on the wire, 0 for none
   * @param each - with `full`: the answers of the limits, limits outermost. Else there are none
   * @param settled - of a settlement: the number of keys that held one of the limits
   */
  constructor(
    integers: Integers,
    binding = 0,
    readonly each: readonly Decision[] = [],
    readonly settled?: number,
    error?: Unavailable,
    cost?: number,
  ) {
    super(integers, undefined, error, cost)
    this.binding = binding === 0 ? null : binding
  }
}

function checkFraction(fraction: number): void {
  if (typeof fraction !== 'number' || !(fraction > 0 && fraction <= 1))
    throw new ConfigurationError('fraction must be a number above 0 and at most 1')
}

/** A lease or a hold was refused. */
export class Refused extends RateLimitError {
  override name = 'Refused'

  /**
   * @param decision - the refusal, with `retryAfter`
   */
  constructor(readonly decision: Decision) {
    super(decision.retryAfter === null ? 'refused, and will never be admitted' : `refused for ${decision.retryAfter} ms`)
  }
}
