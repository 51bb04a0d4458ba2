/** The questions of a limiter, from what its methods are given. What is wrong is an error that names the argument. */

import { ConfigurationError } from '../errors.js'
import { checkFlag, checkList, checkSignal, known, type Names } from './arguments.js'
import { Call, type HoldOptions } from './call.js'
import { can } from './facts.js'
import { limitOf, type LimitLike } from './limit.js'
import { Concurrent } from './limiters.js'
import { checkedWait, costWord } from './options.js'
import type { AskCallOptions, LeaseOptions, LimitCallOptions, PeekCallOptions, RefundOptions } from './options.js'
import { isRate, limiterOf, type LimiterLike } from './rate.js'
import { span, type Settings } from './settings.js'
import { textWord, type Limiter } from './values.js'

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
export interface Question<A = Limiter | string | Several> {
  readonly call: Call
  /** A limiter, the name of a policy, or limits. */
  readonly about: A
  /** What it costs each limit without a cost of its own. 1 by default. */
  readonly cost?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** Set if a refusal may be answered from memory. */
  readonly place?: Place | undefined
  /** A look, which is not counted. */
  readonly isLook?: boolean
}

/** The most keys or limits of a call. */
export const MOST = 64

const OF_LIMIT: Names<LimitCallOptions> = { cost: true, wait: true, signal: true, hold: true }
const OF_ASK: Names<AskCallOptions> = { ...OF_LIMIT, leaseId: true, keys: true, full: true }
const OF_PEEK: Names<PeekCallOptions> = { cost: true, keys: true, leaseId: true, signal: true }
const OF_REFUND: Names<RefundOptions> = { cost: true }
const OF_HOLD: Names<HoldOptions> = { id: true, ttl: true }
const OF_LEASE: Names<LeaseOptions> = {
  capacity: true, ttl: true, cost: true, reserved: true, critical: true, wait: true, renew: true, signal: true,
}

/** Makes the questions of a limiter. */
export class Questions {
  /** @param prefix - stands before each key */
  constructor(private readonly prefix: string, private readonly cache: Settings['cache']) {}

  /** A limiter's own command. */
  limit(key: string, limiter: LimiterLike, options: LimitCallOptions): Question<Limiter> {
    checkCall(known('options', options, OF_LIMIT))
    const about = limiterOf(limiter)
    checkId(about)
    if (options.wait !== undefined && !can(about, 'block')) throw new ConfigurationError(`${about.name} takes no wait`)
    if (options.hold !== undefined && !can(about, 'hold')) throw new ConfigurationError(`${about.name} takes no hold`)
    const call = this.#call(`RL.${about.name}`).key(key).values(about.words)
    call.option('COST', costWord(options)).hold(options.hold).wait(checkedWait(options))
    const item = about.name === 'SKETCH' ? about.words[0] : undefined
    return { call, about, cost: options.cost, signal: options.signal, place: this.#place(call, isPlain(options) && isRemembered(about), item) }
  }

  /** `RL.MULTI`. */
  limits(keys: readonly string[], limits: readonly LimitLike[], options: LimitCallOptions): Question<Several> {
    checkCall(known('options', options, OF_LIMIT))
    checkKeysAndLimits(keys, limits)
    for (const { limiter } of limits.map(limitOf)) {
      checkId(limiter)
      if (!can(limiter, 'joint')) throw new ConfigurationError(`${limiter.name} cannot be asked together with other limits`)
    }
    const call = this.#call('RL.MULTI').numbered(keys)
    call.option('COST', costWord(options)).hold(options.hold).wait(checkedWait(options)).limits(limits)
    const place = this.#place(call, isPlain(options) && limits.every((limit) => isRemembered(limitOf(limit).limiter)))
    return { call, about: { limits, keys: keys.length }, cost: options.cost, signal: options.signal, place }
  }

  /** `RL.ASK`. */
  ask(key: string, policy: string, options: AskCallOptions): Question<string> {
    checkCall(known('options', options, OF_ASK))
    checkFlag('full', options.full)
    const { leaseId, hold, full, keys, signal } = options
    const call = this.#call('RL.ASK').key(key).value(policyWord(policy)).option('COST', costWord(options))
    call.option('ID', leaseIdWord(leaseId)).hold(hold).wait(checkedWait(options)).flag('FULL', full).more(checkedMore(keys))
    const place = this.#place(call, this.cache?.cacheAsk === true && isPlain(options) && leaseId === undefined)
    return { call, about: policy, signal, place }
  }

  /** `RL.PEEK` or `RL.ASKPEEK`. A replica may have other policies than its primary, or none, so it is not asked for them. */
  peek(key: string, of: LimiterLike, options: PeekCallOptions): Question<Limiter | string> {
    const { signal, leaseId, keys } = known('options', options, OF_PEEK)
    checkSignal(signal)
    const about = policyOrLimiter(of)
    const isPolicy = typeof about === 'string'
    const call = isPolicy ? this.#call('RL.ASKPEEK').key(key).value(about) : this.#call('RL.PEEK', true).key(key).limiter(about)
    call.option('COST', costWord(options))
    if (isPolicy) call.option('ID', leaseIdWord(leaseId)).more(checkedMore(keys))
    return { call, about, cost: options.cost, signal, isLook: true }
  }

  /** `RL.REFUND`. */
  refund(key: string, limiter: LimiterLike, options: RefundOptions): Question<Limiter> {
    known('options', options, OF_REFUND)
    const about = limiterOf(limiter)
    const call = this.#call('RL.REFUND').key(key).limiter(about).option('COST', costWord(options))
    return { call, about, cost: 0, isLook: true }
  }

  /** `RL.CONCURRENT`. */
  lease(key: string, id: string, options: LeaseOptions): Question<Limiter> {
    const { capacity, ttl, reserved, critical, renew, signal } = known('options', options, OF_LEASE)
    checkSignal(signal)
    checkFlag('renew', renew)
    checkFlag('critical', critical)
    const about = new Concurrent(capacity, ttl, { id, reserved, critical })
    const call = this.#call('RL.CONCURRENT').key(key).values(about.words)
    call.option('COST', costWord(options, 1)).wait(checkedWait(options))
    return { call, about, signal }
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

/** The name of a policy, checked. */
export function policyWord(policy: string): string {
  return textWord('policy', policy, 64)
}

/** The id of a lease or a hold, checked. */
export function idWord(name: string, id: string): string {
  return textWord(name, id, 256)
}

function checkId(limiter: Limiter): void {
  if (limiter.name === 'CONCURRENT' && (limiter as Concurrent).id === undefined)
    throw new ConfigurationError('CONCURRENT needs an id here')
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

function checkCall({ signal, hold }: LimitCallOptions): void {
  checkSignal(signal)
  if (hold === undefined) return
  const { id, ttl } = known('hold', hold, OF_HOLD)
  idWord('hold.id', id)
  span('hold.ttl', ttl)
}

function leaseIdWord(leaseId: string | undefined): string | undefined {
  return leaseId === undefined ? undefined : idWord('leaseId', leaseId)
}

// Whether a refusal says all there is to say.
function isPlain({ cost, wait, hold }: LimitCallOptions): boolean {
  return wait === undefined && hold === undefined && cost !== 0
}

// Whether a refusal may be remembered: it holds until its time, and asking again would change nothing.
function isRemembered(limiter: Limiter): boolean {
  return !can(limiter, 'early') && !can(limiter, 'bans') && !can(limiter, 'counts_refused')
}
