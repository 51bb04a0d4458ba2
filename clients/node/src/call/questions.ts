/**
 * The questions of a limiter, from what its methods are given. What is wrong is an error that names the argument.
 *
 * @module
 */

import { checkFlag, checkList, checkSignal, known, type Names } from './arguments.js'
import type { HoldOptions } from './call.js'
import { checkedWait, costWord } from './options.js'
import type { AskCallOptions, LimitCallOptions, PeekCallOptions } from './options.js'
import type { Core } from '../core.js'
import { MultiDecision, type AskDecision, type Decision } from '../decide/decision.js'
import { limitOf } from './limit.js'
import { integerWord, textWord } from './values.js'
import { span } from './settings.js'
import { isRemembered, reading, type Question } from '../decide/asking.js'
import { isRate, limiterOf, type LimiterLike, type LimitLike } from './rate.js'
import * as replies from '../decide/replies.js'

const OF_LIMIT: Names<LimitCallOptions> = { cost: true, wait: true, signal: true, hold: true }
const OF_ASK: Names<AskCallOptions> = { ...OF_LIMIT, leaseId: true, keys: true, full: true }
const OF_PEEK: Names<PeekCallOptions> = { cost: true, keys: true, leaseId: true, signal: true }
const OF_HOLD: Names<HoldOptions> = { id: true, ttl: true }

/** A limiter's own command. */
export function limitQuestion(core: Core, key: string, limiter: LimiterLike, options: LimitCallOptions): Question<Decision> {
  checkCall(known('options', options, OF_LIMIT))
  const asked = limiterOf(limiter)
  const call = core.call(`RL.${asked.name}`).key(key).values(asked.words)
  call.option('COST', costWord(options)).hold(options.hold).wait(checkedWait(options))
  const item = asked.name === 'SKETCH' ? asked.words[0] : undefined
  const { signal } = options
  return { call, key, ...reading(asked), signal, item, cached: isPlain(options) && isRemembered(asked) }
}

/** `RL.MULTI`. */
export function limitsQuestion(
  core: Core,
  keys: readonly string[],
  limits: readonly LimitLike[],
  options: LimitCallOptions,
): Question<MultiDecision> {
  checkCall(known('options', options, OF_LIMIT))
  checkKeysAndLimits(keys, limits)
  const call = core.call('RL.MULTI').numbered(keys)
  call.option('COST', costWord(options)).hold(options.hold).wait(checkedWait(options)).limits(limits)
  return {
    call,
    key: keys[0] ?? '',
    read: (reply) => replies.multi(reply, limits, keys.length),
    otherwise: (integers, error) => new MultiDecision(integers, [], undefined, error),
    signal: options.signal,
    cached: isPlain(options) && limits.every((limit) => isRemembered(limitOf(limit).limiter)),
  }
}

/** `RL.ASK`. */
export function askQuestion(core: Core, key: string, policy: string, options: AskCallOptions): Question<AskDecision> {
  checkCall(known('options', options, OF_ASK))
  checkFlag('full', options.full)
  const { leaseId, hold, full, keys, signal } = options
  const call = core.call('RL.ASK').key(key).value(textWord('policy', policy)).option('COST', costWord(options))
  call.option('ID', leaseIdWord(leaseId)).hold(hold).wait(checkedWait(options)).flag('FULL', full).more(checkedMore(keys))
  const { cacheAsk = false } = core.settings.cache ?? {}
  return { call, key, ...reading(policy), signal, cached: cacheAsk && isPlain(options) && leaseId === undefined }
}

/** `RL.PEEK` or `RL.ASKPEEK`. A replica may have other policies than its primary, or none, so it is not asked for them. */
export function peekQuestion(core: Core, key: string, of: LimiterLike, options: PeekCallOptions): Question<Decision> {
  checkSignal(known('options', options, OF_PEEK).signal)
  const { signal, leaseId, keys } = options
  if (isPolicy(of)) {
    const call = core.call('RL.ASKPEEK').key(key).value(textWord('policy', of)).option('COST', costWord(options))
    call.option('ID', leaseIdWord(leaseId)).more(checkedMore(keys))
    return { call, key, ...reading(of), signal, isLook: true }
  }
  const asked = limiterOf(of)
  const call = core.call('RL.PEEK', true).key(key).limiter(asked).option('COST', costWord(options))
  return { call, key, ...reading(asked), signal, isLook: true }
}

/** `RL.REFUND`. */
export function refundQuestion(core: Core, key: string, limiter: LimiterLike, amount: number): Question<Decision> {
  const asked = limiterOf(limiter)
  const call = core.call('RL.REFUND').key(key).limiter(asked).option('COST', integerWord('amount', amount, 0))
  return { call, key, ...reading(asked), isLook: true }
}

/** The name of a policy, or a limiter. */
export function policyOrLimiter(of: LimiterLike) {
  return isPolicy(of) ? textWord('policy', of) : limiterOf(of)
}

/** Checks the keys and the limits of a call with several. A text would be taken for the list of its characters. */
export function checkKeysAndLimits(keys: readonly string[], limits: readonly LimitLike[]): void {
  checkList('keys', keys, 1)
  checkList('limits', limits, 1)
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
  textWord('hold.id', id)
  span('hold.ttl', ttl)
}

function leaseIdWord(leaseId: string | undefined): string | undefined {
  return leaseId === undefined ? undefined : textWord('leaseId', leaseId)
}

// Whether a refusal says all there is to say.
function isPlain({ cost, wait, hold }: LimitCallOptions): boolean {
  return wait === undefined && hold === undefined && cost !== 0
}

function isPolicy(of: LimiterLike): of is string {
  return typeof of === 'string' && !isRate(of)
}
