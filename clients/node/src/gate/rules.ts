/**
 * The rules of a web application: what limits a request, and by which key.
 *
 * @module
 */

import { checkFunction, checkList, known, shown, type Names } from '../call/arguments.js'
import { ConfigurationError } from '../errors.js'
import { can } from '../call/facts.js'
import { integerWord, milliseconds, type Duration, type Limiter } from '../call/values.js'
import { limiterOf, type LimiterLike } from '../call/rate.js'

type Awaitable<T> = T | Promise<T>
type None = null | undefined
/** The same for all requests, or computed from each. */
export type PerRequest<R, T> = T | ((request: R) => Awaitable<T>)

interface RuleBase<R> {
  /** The name of the rule in headers, bodies, keys and `spent`: printable ASCII without `"` and `\`. */
  name: string
  /** Who is limited, such as a user. `null` or `undefined`: the rule is not for this request. */
  key: (request: R) => Awaitable<string | None>
  /** What the request costs, from 0 on. 1 by default. */
  cost?: PerRequest<R, number> | undefined
  /**
   * Of a budget: the most that the request is expected to cost, from 1 on. It is charged before the handler runs. The
   * handler counts in `spent` under the rule's name, and that is charged in the end. If it counts nothing, the estimate
   * stands.
   */
  estimate?: PerRequest<R, number> | undefined
  /** How long an estimate can be settled: longer than the longest response. 10 minutes by default. */
  hold?: Duration | undefined
}

/** A rule with a limit that the application names. */
export interface LimitRule<R> extends RuleBase<R> {
  /**
   * A limiter, or a rate such as `'100/m'`, or a function that returns one for the caller's plan. If it returns `null` or
   * `undefined`, the rule is not for this request. `Concurrent` without an id is a lease for the length of the response.
   */
  limit: LimiterLike | ((request: R) => Awaitable<LimiterLike | None>)
  policy?: undefined
}

/** A rule with limits that the server keeps under a name. */
export interface PolicyRule<R> extends RuleBase<R> {
  /**
   * A policy's name, or a function that returns one. Its leases last for the response, and are not renewed. A policy with
   * leases has no refund: its other limits stay charged if a later rule refuses.
   */
  policy: string | ((request: R) => Awaitable<string | None>)
  limit?: undefined
}

/** What limits a request. */
export type Rule<R> = LimitRule<R> | PolicyRule<R>

/** A rule that is for a request, and all that it says about it. */
export interface Asked {
  readonly name: string
  /** The key, without prefixes. */
  readonly key: string
  /** What is asked: one of the two. */
  readonly limiter: Limiter | undefined
  readonly policy: string | undefined
  readonly cost: number
  readonly estimate: number | undefined
  /** In ms. */
  readonly hold: number
}

const TEN_MINUTES = 600_000
// What RL.MULTI takes.
const MOST = 64
const NAME = /^[ !#-[\]-~]+$/

const OF_RULE: Names<LimitRule<never> & PolicyRule<never>> = {
  name: true,
  key: true,
  limit: true,
  policy: true,
  cost: true,
  estimate: true,
  hold: true,
}

/** Checks rules. Throws {@link ConfigurationError}, which names the rule. */
export function checkRules<R>(rules: readonly Rule<R>[]): void {
  checkList('rules', rules)
  if (rules.length > MOST) throw new ConfigurationError(`rules must be a list of at most ${MOST}`)
  const names = new Set<string>()
  for (const rule of rules as readonly Rule<R>[]) {
    const { name } = (rule ?? {}) as Partial<Rule<R>>
    if (typeof name !== 'string' || !NAME.test(name)) throw new ConfigurationError(`${shown(name)} is no name of a rule`)
    if (names.has(name)) throw new ConfigurationError(`two rules have the name '${name}'`)
    names.add(name)
    inRule(name, () => checkRule(rule))
  }
}

function checkRule<R>(rule: Rule<R>): void {
  const { key, limit, policy, cost, estimate, hold } = known('options', rule, OF_RULE)
  checkFunction('key', key)
  if ((limit === undefined) === (policy === undefined)) throw new ConfigurationError('it needs either a limit or a policy')
  if (cost !== undefined && estimate !== undefined) throw new ConfigurationError('it has either a cost or an estimate')
  if (limit !== undefined && typeof limit !== 'function') checkHeld(limiterOf(limit), estimate !== undefined)
  if (policy !== undefined && typeof policy !== 'function') checkPolicy(policy)
  if (cost !== undefined && typeof cost !== 'function') integerWord('cost', cost, 0)
  if (estimate !== undefined && typeof estimate !== 'function') integerWord('estimate', estimate, 1)
  if (hold !== undefined && milliseconds('hold', hold) < 1) throw new ConfigurationError('hold must be at least 1 ms')
}

/**
 * What a rule says about a request. Nothing if it is not for it.
 *
 * @param keyOf - makes the key of the rule's name and the caller
 * @throws ConfigurationError if one of its functions returned something wrong
 */
export async function askedBy<R>(rule: Rule<R>, request: R, keyOf: (name: string, caller: string) => string): Promise<Asked | undefined> {
  const caller = await rule.key(request)
  if (caller === null || caller === undefined) return undefined
  const { limit, policy, cost = 1, estimate } = rule
  const limiter = limit === undefined ? undefined : await valueOf(limit, request)
  const named = policy === undefined ? undefined : await valueOf(policy, request)
  // What a function returns may be nothing, and then the rule is not for the request. An empty text is a mistake.
  if ((limiter ?? named ?? undefined) === undefined) return undefined
  const charge = await valueOf(cost, request)
  const estimated = estimate === undefined ? undefined : await valueOf(estimate, request)
  return inRule(rule.name, () => ({
    name: rule.name,
    key: keyOf(rule.name, checkCaller(caller)),
    limiter: limiter === undefined ? undefined : checkHeld(limiterOf(limiter as LimiterLike), estimate !== undefined),
    policy: named === undefined ? undefined : checkPolicy(named as string),
    cost: Number(integerWord('cost', charge, 0)),
    estimate: estimate === undefined ? undefined : Number(integerWord('estimate', estimated as number, 1)),
    hold: rule.hold === undefined ? TEN_MINUTES : milliseconds('hold', rule.hold),
  }))
}

// Else all objects would share one limit, that of '[object Object]'.
function checkCaller(caller: string): string {
  if (typeof caller === 'string' && caller !== '') return caller
  throw new ConfigurationError(`key must return a text that is not empty, null or undefined, not ${shown(caller)}`)
}

function valueOf<R, T>(value: PerRequest<R, T>, request: R): Awaitable<T> {
  return typeof value === 'function' ? (value as (request: R) => Awaitable<T>)(request) : value
}

function checkHeld(limiter: Limiter, hasEstimate: boolean): Limiter {
  if (hasEstimate && !can(limiter, 'hold')) throw new ConfigurationError(`${limiter.name} takes no estimate`)
  return limiter
}

function checkPolicy(policy: string): string {
  if (typeof policy !== 'string' || policy === '') throw new ConfigurationError('policy must be the name of a policy')
  return policy
}

function inRule<T>(name: string, check: () => T): T {
  try {
    return check()
  } catch (error) {
    throw named(name, error)
  }
}

/** Adds the rule's name to the error of a wrong configuration. */
export function named(name: string, error: unknown): unknown {
  if (!(error instanceof ConfigurationError)) return error
  return new ConfigurationError(`rule '${name}': ${error.message}`, { cause: error })
}
