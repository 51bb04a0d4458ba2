/** The rules of a web application: what limits a request, and by which key. */

import { checkFlag, checkFunction, checkList, known, shown, type Names } from '../call/arguments.js'
import { can } from '../call/facts.js'
import type { Spread } from '../decide/headers.js'
import type { Concurrent, Smooth } from '../call/limiters.js'
import { MOST, policyWord } from '../call/questions.js'
import { limiterOf, type LimiterLike } from '../call/rate.js'
import { steadyRate } from '../call/steady.js'
import { decimalWord, integerWord, milliseconds, shortest, type Duration, type Limiter } from '../call/values.js'
import { ConfigurationError } from '../errors.js'
import { localLimit } from '../local/local.js'
import { slotOf } from '../wire/slots.js'

/** What a function of a rule returns for a request that the rule is not for. */
export const UNLIMITED: unique symbol = Symbol('UNLIMITED')
/** {@link UNLIMITED}. */
export type Unlimited = typeof UNLIMITED

type Awaitable<T> = T | Promise<T>
/** The same for all requests, or computed from each. */
export type PerRequest<R, T> = T | ((request: R) => Awaitable<T>)

interface RuleBase<R> {
  /** The name of the rule in headers, bodies, keys and `spent`: printable ASCII. */
  name: string
  /**
   * Who is limited, such as a user: a text that is not empty. {@link UNLIMITED}: the rule is not for this request. Nothing, such
   * as the address of a client that has gone, is an error of the request.
   */
  key: (request: R) => Awaitable<string | Unlimited | null | undefined>
  /** What the request costs, from 0 on. 1 by default. */
  cost?: PerRequest<R, number> | undefined
  /**
   * Of a budget: the most that the request is expected to cost, from 1 on. It is charged before the handler runs. The
   * handler counts in `spent` under the rule's name, and that is charged in the end. If it counts nothing, the estimate
   * stands.
   */
  estimate?: PerRequest<R, number> | undefined
  /**
   * Whether a request counts, by the status of its response, such as `(status) => status >= 400` for failed logins. The cost is
   * charged before the handler runs, and given back if the response does not count. Without a status it counts: the client has
   * hung up, the process ends, or it is the handshake of a WebSocket. So it does if the function fails, which is logged. Not with
   * an estimate, and not for a limit that is answered locally or cannot be held.
   */
  counts?: ((status: number) => boolean) | undefined
  /**
   * By which part of a wait of 5 s and more `Retry-After` differs between callers, from 0 to 1, so that they do not all come back
   * in one second. 0 by default. With 0.2 and a wait of 60 s each is told 60 to 72 s, always the same.
   */
  spread?: number | undefined
  /** Whether the rule is for handshakes of WebSockets too. It is by default. */
  websocket?: boolean | undefined
  /** How long a charge can be settled or given back: longer than the longest response. 10 minutes by default. */
  hold?: Duration | undefined
}

/** A rule with a limit that the application names. */
export interface LimitRule<R> extends RuleBase<R> {
  /**
   * A limiter, or a rate such as `'100/m'`, or a function that returns one for the caller's plan. If it returns
   * {@link UNLIMITED}, the rule is not for this request. `Concurrent` is a lease for the length of the response.
   */
  limit: LimiterLike | ((request: R) => Awaitable<LimiterLike | Unlimited | null | undefined>)
  /**
   * The number of processes that ask this limit, if each of them answers from memory: see `RateLimiter.local`. For a rate, a
   * `Gcra`, or a `TokenBucket` without `batch`.
   */
  local?: number | undefined
  policy?: undefined
}

/** A rule with limits that the server keeps under a name. */
export interface PolicyRule<R> extends RuleBase<R> {
  /**
   * A policy's name, or a function that returns one. Its leases last for the response, and are not renewed. A policy with
   * leases has no refund: its other limits stay charged if a later rule refuses.
   */
  policy: string | ((request: R) => Awaitable<string | Unlimited | null | undefined>)
  limit?: undefined
  local?: undefined
}

/** What limits a request. */
export type Rule<R> = LimitRule<R> | PolicyRule<R>

/** What a rule says about a request that it is for. */
interface AskedBase {
  readonly name: string
  /** The key, without prefixes. */
  readonly key: string
  readonly cost: number
  /** What is held until the response is over, of a rule with an estimate, or of one that counts by the status. */
  readonly estimate: number | undefined
  readonly counts: RuleBase<never>['counts']
  readonly spread: Spread | undefined
  readonly hold: Duration
}

/** What a rule with a limit says. */
export interface AskedLimit extends AskedBase {
  readonly limiter: Limiter
  readonly local: number | undefined
}

/** What a rule with a policy says. */
export interface AskedPolicy extends AskedBase {
  readonly policy: string
}

/** What a rule says. */
export type Asked = AskedLimit | AskedPolicy

const MOST_COST = Number.MAX_SAFE_INTEGER
const NAME = /^[ -~]+$/
const OF_RULE: Names<LimitRule<never> & PolicyRule<never>> = {
  name: true, key: true, limit: true, policy: true, cost: true, estimate: true, counts: true, spread: true, websocket: true, hold: true, local: true,
}

/** Checks rules. Throws {@link ConfigurationError}, which names the rule. */
export function checkRules<R>(rules: readonly Rule<R>[]): void {
  checkList('rules', rules)
  if (rules.length > MOST) throw new ConfigurationError(`rules must be a list of at most ${MOST}`)
  const names = new Set<string>()
  for (const rule of rules as readonly Rule<R>[]) {
    const { name } = (rule ?? {}) as Partial<Rule<R>>
    if (typeof name !== 'string' || !NAME.test(name))
      throw new ConfigurationError(`a rule needs a name of printable ASCII, as { name: 'user', key: …, limit: '10/s' }, not ${shown(name ?? rule)}`)
    if (names.has(name)) throw new ConfigurationError(`two rules have the name '${name}'`)
    names.add(name)
    inRule(name, () => checkRule(rule))
  }
}

function checkRule<R>(rule: Rule<R>): void {
  const { key, limit, policy, cost, estimate, counts, spread, websocket, hold, local } = known('options', rule, OF_RULE)
  checkFunction('key', key)
  if ((limit === undefined) === (policy === undefined)) throw new ConfigurationError('it needs either a limit or a policy')
  if (local !== undefined) {
    integerWord('local', local, 1)
    if (policy !== undefined || estimate !== undefined || counts !== undefined)
      throw new ConfigurationError('what is answered locally has neither a policy nor an estimate, and no counts')
  }
  if (counts !== undefined) checkFunction('counts', counts)
  if (counts !== undefined && estimate !== undefined) throw new ConfigurationError('it has either counts or an estimate')
  if (cost !== undefined && estimate !== undefined) throw new ConfigurationError('it has either a cost or an estimate')
  if (limit !== undefined && typeof limit !== 'function') checkLimiter(limit, rule)
  if (policy !== undefined && typeof policy !== 'function') policyWord(policy)
  if (cost !== undefined && typeof cost !== 'function') integerWord('cost', cost, 0)
  if (estimate !== undefined && typeof estimate !== 'function') integerWord('estimate', estimate, 1)
  checkFlag('websocket', websocket)
  if (spread !== undefined) decimalWord('spread', spread, 0, 1)
  if (hold !== undefined && milliseconds('hold', hold) < 1) throw new ConfigurationError('hold must be at least 1 ms')
}

/** Whether processes can share a rule's limit, as far as that is known before there is a request. */
export function hasRate<R>({ limit, policy }: Rule<R>): boolean {
  if (policy !== undefined) return false
  return typeof limit === 'function' || steadyRate(limiterOf(limit)) !== undefined
}

/**
 * Notes the limits of a gate among those of all gates of a limiter: gates share the keys of a rule, by its name.
 *
 * @throws ConfigurationError if another gate has another limit under a name, so that both would charge the same keys
 */
export function claim<R>(claims: Map<string, string>, rules: readonly Rule<R>[]): void {
  const own = new Map<string, string>()
  for (const { name, limit, policy } of rules) {
    // What a function returns is not known yet.
    if (typeof (policy ?? limit) === 'function') continue
    const limiter = policy === undefined ? limiterOf(limit as LimiterLike) : undefined
    own.set(name, limiter === undefined ? `the policy '${String(policy)}'` : counting(limiter))
  }
  for (const [name, limit] of own) {
    const other = claims.get(name) ?? limit
    if (other !== limit)
      throw new ConfigurationError(
        `rule '${name}': another gate of this limiter has it with ${other}, and this one with ${limit}, so they would share a count: ` +
          'give one of them another name',
      )
  }
  for (const [name, limit] of own) claims.set(name, limit)
}

/** The words that say what a limiter counts, the same for equal limits. CRITICAL belongs to the request. */
function counting({ name, words }: Limiter): string {
  return [name, ...words.filter((word) => word !== 'CRITICAL').map(shortest)].join(' ')
}

/**
 * What a rule says about a request. Nothing if it is not for it.
 *
 * @param keyOf - makes the key of the rule's name and the caller
 * @throws ConfigurationError if one of its functions returned something wrong
 */
export async function askedBy<R>(
  rule: Rule<R>,
  request: R,
  keyOf: (name: string, caller: string) => string,
): Promise<Asked | undefined> {
  const { name, limit, policy, counts, hold = '10m' } = rule
  const caller = await rule.key(request)
  if (caller === UNLIMITED) return undefined
  const named = policy === undefined ? undefined : await valueOf(policy, request)
  const given = limit === undefined ? undefined : await valueOf(limit as PerRequest<R, LimiterLike | Unlimited>, request)
  if (named === UNLIMITED || given === UNLIMITED) return undefined
  const cost = await valueOf(rule.cost ?? 1, request)
  const most = rule.estimate === undefined ? undefined : await valueOf(rule.estimate, request)
  return inRule(name, () => {
    integerWord('cost', cost, 0)
    // A request that is expected to cost nothing still holds what it may cost.
    const expected = rule.estimate === undefined ? undefined : Math.max(1, Number(integerWord('estimate', most as number, -MOST_COST)))
    // A look holds nothing.
    const estimate = counts !== undefined && cost > 0 ? cost : expected
    const key = keyOf(name, checkCaller(caller))
    const spread = rule.spread ? { most: rule.spread, slot: slotOf(key) } : undefined
    const base = { name, key, cost, estimate, counts, spread, hold }
    if (policy !== undefined) return { ...base, policy: policyWord(named as string) }
    return { ...base, limiter: checkLimiter(given as LimiterLike, rule), local: rule.local }
  })
}

// Else all objects would share one limit, that of '[object Object]'.
function checkCaller(caller: string | null | undefined): string {
  if (typeof caller !== 'string' || caller === '')
    throw new ConfigurationError(`key must return a text that is not empty, or UNLIMITED, not ${shown(caller)}`)
  // They have no encoding in UTF-8. So written, different callers have different keys.
  return caller.replace(/\p{Surrogate}/gu, (one) => `\\u${one.charCodeAt(0).toString(16)}`)
}

function valueOf<R, T>(value: PerRequest<R, T>, request: R): Awaitable<T> {
  return typeof value === 'function' ? (value as (request: R) => Awaitable<T>)(request) : value
}

// What RL.MULTI takes, and what it needs beside other limits.
function checkLimiter(given: LimiterLike, { estimate, counts, local }: Rule<never>): Limiter {
  if (local !== undefined) return localLimit(given)[0]
  const limiter = limiterOf(given)
  const { id, maxwait } = limiter as Partial<Concurrent & Smooth>
  if (!can(limiter, 'joint')) throw new ConfigurationError(`${limiter.name} cannot be asked together with other limits`)
  if (limiter.name === 'SMOOTH' && maxwait === undefined)
    throw new ConfigurationError('SMOOTH needs a maxwait, since admitted requests wait for their turn')
  if (limiter.name === 'CONCURRENT' && id !== undefined) throw new ConfigurationError('a lease has no id: each request gets one of its own')
  if ((estimate ?? counts) !== undefined && !can(limiter, 'hold'))
    throw new ConfigurationError(`${limiter.name} takes no ${counts === undefined ? 'estimate' : 'counts'}`)
  return limiter
}

function inRule<T>(name: string, check: () => T): T {
  try {
    return check()
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error
    throw new ConfigurationError(`rule '${name}': ${error.message}`, { cause: error })
  }
}
