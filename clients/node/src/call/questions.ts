/** The questions of a limiter, from what its methods are given. What is wrong is an error that names the argument. */

import { ConfigurationError } from '../errors.js'
import { checkFlag, checkList, known, shown, type Names } from './arguments.js'
import { Call, type HoldOptions } from './call.js'
import { can } from './facts.js'
import { limitOf, type LimitLike } from './limit.js'
import { Concurrent } from './limiters.js'
import { checkDrops, checkedWait, costWord, mannerWords, OF_CALL, told, type Told } from './options.js'
import type { AdaptOptions, AskCallOptions, ExplainOptions, LeaseOptions, LimitCallOptions, LimitsCallOptions, PeekCallOptions, RefundOptions } from './options.js'
import { isRate, limiterAt, limiterOf, type LimiterLike } from './rate.js'
import { span, type Settings } from './settings.js'
import { OF_TENANT, tenantWords, type TenantOptions } from './tenant.js'
import { integerWord, textWord, type Limiter } from './values.js'

/** Limits, each on all of some keys or on one. */
export interface Several {
  readonly limits: readonly LimitLike[]
  /** The number of the keys. */
  readonly keys: number
}

/** What a refusal is kept under. */
export interface Place {
  /** The keys of the call. What is given back to one of them ends the refusal. */
  readonly keys: readonly string[]
  /** The keys as one word, and with them the item of a sketch: each item has a limit of its own. */
  readonly group: string
  /** The whole call. */
  readonly call: string
}

/** A question to the server. */
export interface Question<A = Limiter | string | Several> extends Told {
  readonly call: Call
  /** A limiter, the name of a policy, or limits. */
  readonly about: A
  /** What it costs each limit without a cost of its own. 1 by default. */
  readonly cost?: number | undefined
  /** Whether it may be admitted with a part of its cost. */
  readonly isPartial?: boolean
  /** Set if a refusal may be answered from memory. */
  readonly place?: Place | undefined
  /** A look, which is not counted. */
  readonly isLook?: boolean
}

/** The most keys or limits of a call. */
export const MOST = 64

const OF_LIMITS: Names<LimitsCallOptions> = { cost: true, wait: true, critical: true, hold: true, force: true, ...OF_CALL }
const OF_LIMIT: Names<LimitCallOptions> = { ...OF_LIMITS, ...OF_TENANT, partial: true, reserve: true }
const OF_ASK: Names<AskCallOptions> = { ...OF_LIMITS, ...OF_TENANT, leaseId: true, keys: true, full: true }
const OF_PEEK: Names<PeekCallOptions> = { cost: true, keys: true, leaseId: true, ...OF_CALL }
const OF_EXPLAIN: Names<ExplainOptions> = { cost: true, keys: true, leaseId: true, timeout: true, timeoutMs: true, signal: true }
const OF_REFUND: Names<RefundOptions> = { cost: true, ...OF_CALL }
const OF_HOLD: Names<HoldOptions> = { id: true, ttl: true }
const OF_LEASE: Names<LeaseOptions> = {
  capacity: true, ttl: true, cost: true, reserved: true, critical: true, wait: true, renew: true, adapt: true, drops: true,
  fence: true, ...OF_CALL, ...OF_TENANT,
}
const OF_ADAPT: Names<AdaptOptions> = { gradient: true, floor: true, start: true, backoff: true, slow: true }

/** Makes the questions of a limiter. */
export class Questions {
  /** @param prefix - stands before each key */
  constructor(private readonly prefix: string, private readonly cache: Settings['cache']) {}

  /** A limiter's own command. */
  limit(key: string, limiter: LimiterLike, options: LimitCallOptions): Question<Limiter> {
    checkCall(known('options', options, OF_LIMIT))
    const about = limiterAt(key, limiter)
    checkId(about)
    if (options.wait !== undefined && !can(about, 'block')) throw new ConfigurationError(`${about.name} takes no wait`)
    if (options.hold !== undefined && !can(about, 'hold')) throw new ConfigurationError(`${about.name} takes no hold`)
    checkTenant(about, options, options)
    const manner = mannerWords(options, about)
    const call = this.#call(`RL.${about.name}`).key(key).values(about.words)
    call.option('COST', costWord(options)).values(manner).hold(options.hold).wait(checkedWait(options, manner))
    // A lease has the word once.
    call.flag('CRITICAL', options.critical && !(about as Concurrent).critical).values(tenantWords(options))
    const item = about.name === 'SKETCH' ? about.words[0] : undefined
    const place = this.#place(call, manner.length === 0 && isPlain(options) && isRemembered(about), item)
    return { call, about, place, cost: options.cost, isPartial: options.partial === true, ...told(options) }
  }

  /** `RL.MULTI`. */
  limits(keys: readonly string[], limits: readonly LimitLike[], options: LimitsCallOptions): Question<Several> {
    checkCall(known('options', options, OF_LIMITS))
    checkKeysAndLimits(keys, limits)
    for (const limit of limits.map(limitOf)) {
      const { limiter } = limit
      checkId(limiter)
      checkTenant(limiter, limit, options)
      if (!can(limiter, 'joint')) throw new ConfigurationError(`${limiter.name} cannot be asked together with other limits`)
    }
    const call = this.#call('RL.MULTI').numbered(keys)
    const manner = mannerWords({ force: options.force })
    call.option('COST', costWord(options)).values(manner).hold(options.hold).wait(checkedWait(options, manner))
    call.flag('CRITICAL', options.critical).limits(limits)
    const place = this.#place(call, manner.length === 0 && isPlain(options) && limits.every((limit) => isRemembered(limitOf(limit).limiter)))
    return { call, about: { limits, keys: keys.length }, place, cost: options.cost, ...told(options) }
  }

  /** `RL.ASK`. */
  ask(key: string, policy: string, options: AskCallOptions): Question<string> {
    checkCall(known('options', options, OF_ASK))
    checkFlag('full', options.full)
    const { leaseId, hold, critical, full, keys } = options
    const manner = mannerWords({ force: options.force })
    const call = this.#call('RL.ASK').key(key).value(policyWord(policy)).option('COST', costWord(options))
    call.option('ID', leaseIdWord(leaseId)).values(manner).hold(hold).wait(checkedWait(options, manner)).flag('CRITICAL', critical)
    call.values(tenantWords(options)).flag('FULL', full).more(checkedMore(keys))
    const isKept = this.cache?.cacheAsk === true && manner.length === 0 && isPlain(options) && leaseId === undefined
    return { call, about: policy, place: this.#place(call, isKept), cost: options.cost, ...told(options) }
  }

  /** `RL.PEEK` or `RL.ASKPEEK`. A replica may have an old version of a policy, so it is not asked for one. */
  peek(key: string, of: LimiterLike, options: PeekCallOptions): Question<Limiter | string> {
    known('options', options, OF_PEEK)
    const about = policyOrLimiter(of)
    const call = typeof about === 'string' ? this.#call('RL.ASKPEEK').key(key).value(about) : this.#call('RL.PEEK', true).key(key).limiter(about)
    return { call: looked(call, about, options), about, cost: options.cost, isLook: true, ...told(options) }
  }

  /** `RL.EXPLAIN`. */
  explain(key: string, of: LimiterLike, options: ExplainOptions): Told & { call: Call } {
    known('options', options, OF_EXPLAIN)
    const about = policyOrLimiter(of)
    const call =
      typeof about === 'string'
        ? this.#call('RL.EXPLAIN').value('RL.ASK').key(key).value(about)
        : this.#call('RL.EXPLAIN', true).value(`RL.${about.name}`).key(key).values(about.words)
    return { call: looked(call, about, options), ...told(options) }
  }

  /** `RL.REFUND`. */
  refund(key: string, limiter: LimiterLike, options: RefundOptions): Question<Limiter> {
    known('options', options, OF_REFUND)
    const about = limiterOf(limiter)
    if (!can(about, 'refund')) throw new ConfigurationError(`${about.name} takes no refund${about.name === 'CONCURRENT' ? ': a lease is released' : ''}`)
    const call = this.#call('RL.REFUND').key(key).limiter(about).option('COST', costWord(options))
    return { call, about, cost: 0, isLook: true, ...told(options) }
  }

  /** `RL.CONCURRENT`. */
  lease(key: string, id: string, options: LeaseOptions): Question<Concurrent> {
    const { capacity, ttl, reserved, critical, renew, adapt, drops, fence } = checkedLease(options)
    checkFlag('renew', renew)
    checkFlag('critical', critical)
    checkFlag('fence', fence)
    if (typeof adapt !== 'object') checkFlag('adapt', adapt)
    else known('adapt', adapt, OF_ADAPT)
    checkDrops(drops)
    if (drops !== undefined && !adapt) throw new ConfigurationError('drops needs adapt')
    const about = new Concurrent(capacity, ttl, { id, reserved, critical, ...(adapt ? { adapt: true, ...Object(adapt) } : {}) })
    if (reserved !== undefined) integerWord('reserved', reserved, 0, capacity - 1)
    const call = this.#call('RL.CONCURRENT').key(key).values(about.words)
    call.option('COST', costWord(options, 1)).wait(checkedWait(options)).values(tenantWords(options)).flag('FENCE', fence)
    return { call, about, cost: options.cost, ...told(options) }
  }

  #call(command: string, readonly = false): Call {
    return new Call(this.prefix, [command], readonly)
  }

  #place(call: Call, isKept: boolean, item?: string): Place | undefined {
    if (!isKept || this.cache === null) return undefined
    const { keys, words } = call
    return { keys, group: JSON.stringify([keys, item]), call: JSON.stringify(words) }
  }
}

/** The name of a policy, or a limiter. */
export function policyOrLimiter(of: LimiterLike): Limiter | string {
  return typeof of === 'string' && !isRate(of) ? policyWord(of) : limiterOf(of)
}

/** The options of a lease, whose names are checked. */
export function checkedLease(options: LeaseOptions): LeaseOptions {
  return known('options', options, OF_LEASE, ['capacity', 'ttl'])
}

/** The name of a policy, checked. */
export function policyWord(policy: string): string {
  if (typeof policy === 'string' ? isRate(policy) : 'words' in Object(policy) || 'clause' in Object(policy))
    throw new ConfigurationError(`policy must be a name, not ${shown(policy)}: a limiter or a rate is asked by limit()`)
  return textWord('policy', policy, 64)
}

/** The id of a lease or a hold, checked. */
export function idWord(name: string, id: string): string {
  return textWord(name, id, 256)
}

/** A lease with this id, unless it has one. Other limiters have none. */
export function withId(limiter: Limiter, id: string): Limiter {
  if (limiter.name !== 'CONCURRENT' || (limiter as Concurrent).id !== undefined) return limiter
  const { name: _name, words: _words, capacity, ttl, ...parameters } = limiter as Concurrent
  return new Concurrent(capacity, ttl, { ...parameters, id })
}

function checkId(limiter: Limiter): void {
  if (limiter.name === 'CONCURRENT' && (limiter as Concurrent).id === undefined)
    throw new ConfigurationError(
      'a call with Concurrent needs the id of the lease: new Concurrent(capacity, ttl, { id }). A lease() has one of its own',
    )
}

/** Checks the keys and the limits of a call with several. A text would be taken for the list of its characters. */
export function checkKeysAndLimits(keys: readonly string[], limits: readonly LimitLike[]): void {
  for (const [name, list] of Object.entries({ keys, limits })) {
    checkList(name, list, 1)
    if (list.length > MOST) throw new ConfigurationError(`${name} must be a list of at most ${MOST}`)
  }
}

/** The keys 2, 3 and so on of a policy, checked. */
export function checkedMore(keys: readonly string[] | undefined): readonly string[] | undefined {
  if (keys !== undefined) checkList('keys', keys)
  return keys
}

function checkCall({ hold, wait, critical }: LimitsCallOptions): void {
  checkFlag('critical', critical)
  if (critical && wait === undefined) throw new ConfigurationError('critical needs wait')
  if (hold === undefined) return
  const { id, ttl } = known('hold', hold, OF_HOLD, ['id', 'ttl'])
  idWord('hold.id', id)
  span('hold.ttl', ttl)
}

// The options of a look. It charges nothing.
function looked(call: Call, about: Limiter | string, options: ExplainOptions): Call {
  const { leaseId, keys } = options
  call.option('COST', costWord(options))
  if (typeof about === 'string') return call.option('ID', leaseIdWord(leaseId)).more(checkedMore(keys))
  checkId(about)
  if (leaseId !== undefined || keys !== undefined) throw new ConfigurationError('only a policy has a leaseId and more keys')
  return call
}

function leaseIdWord(leaseId: string | undefined): string | undefined {
  return leaseId === undefined ? undefined : idWord('leaseId', leaseId)
}

// Tenants share leases, and the line of callers that wait.
function checkTenant(limiter: Limiter, { tenant }: TenantOptions, { wait }: LimitsCallOptions): void {
  if (tenant !== undefined && wait === undefined && !can(limiter, 'early'))
    throw new ConfigurationError(`a tenant of ${limiter.name} needs wait`)
}

// Whether a refusal says all there is to say.
function isPlain({ cost, wait, hold }: LimitsCallOptions): boolean {
  return wait === undefined && hold === undefined && cost !== 0
}

// Whether a refusal may be remembered: it holds until its time, and asking again would change nothing.
function isRemembered(limiter: Limiter): boolean {
  return !can(limiter, 'early') && !can(limiter, 'bans') && !can(limiter, 'counts_refused')
}
