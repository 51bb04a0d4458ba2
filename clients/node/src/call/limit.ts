/** A limit of a call with several: a limiter, and what it is for. */

import { checkFlag, known, type Names } from './arguments.js'
import { limiterOf, type LimiterLike } from './rate.js'
import { OF_TENANT, tenantWords, type TenantOptions } from './tenant.js'
import { integerWord, type Limiter } from './values.js'

/** What may be said of a limit. A tenant is for leases, and for calls that wait. */
export interface LimitOptions extends TenantOptions {
  /** The number of the key that it is for, from 1 on. It is for all keys by default. */
  on?: number | undefined
  /** What the request costs this limit, from 0 on. By default the cost of the call. */
  cost?: number | undefined
  /** Tries the limit: it is judged, and refuses no call. */
  shadow?: boolean | undefined
}

const NAMES: Names<LimitOptions> = { on: true, cost: true, shadow: true, ...OF_TENANT }

/** A limiter, and what it is for. Needed only where more must be said than the limiter itself. */
export class Limit {
  readonly limiter: Limiter
  readonly on: number | undefined
  readonly cost: number | undefined
  readonly shadow: boolean
  readonly tenant: string | undefined
  readonly weight: number | undefined
  /** The words of the limit, from `LIMIT` on. */
  readonly clause: readonly string[]

  /** @throws {@link ConfigurationError} if the limiter or an option is wrong */
  constructor(limiter: LimiterLike, options: LimitOptions = {}) {
    this.limiter = limiterOf(limiter)
    known('options', options, NAMES)
    checkFlag('shadow', options.shadow)
    this.on = options.on
    this.cost = options.cost
    this.shadow = options.shadow ?? false
    this.tenant = options.tenant
    this.weight = options.weight
    const words = ['LIMIT', this.limiter.name, ...this.limiter.words]
    if (this.on !== undefined) words.push('ON', integerWord('on', this.on, 1, 64))
    if (this.cost !== undefined) words.push('COST', integerWord('cost', this.cost, 0))
    if (this.shadow) words.push('SHADOW')
    words.push(...tenantWords(options))
    this.clause = Object.freeze(words)
    Object.freeze(this)
  }
}

/** A limit, a limiter, or a rate such as `'10/s'`. */
export type LimitLike = Limit | LimiterLike

/** The limit that is meant. */
export function limitOf(like: LimitLike): Limit {
  return typeof like === 'object' && like !== null && 'clause' in like ? like : new Limit(like)
}

/** A limit on one key. Without a cost it has that of the call. */
export type Pair = Pick<Limit, 'limiter' | 'cost'>

/** Each pair of a limit and a key, limits outermost, as replies list them. */
export function pairs(limits: readonly LimitLike[], keys: number): Pair[] {
  return limits.flatMap((like) => {
    const { limiter, cost, on } = limitOf(like)
    return Array.from({ length: on === undefined ? keys : 1 }, () => ({ limiter, cost }))
  })
}
