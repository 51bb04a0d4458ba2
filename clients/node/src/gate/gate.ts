/**
 * What every web framework needs: decides about a request, and ends what it took when the response is over.
 *
 * ```text
 * request    each rule that is local          from memory, or 1 call of its limiter
 *            a shedder, if there is one       1 RL.SHED
 *            all rules with a limit           1 RL.MULTI: all admit and are charged, or none is
 *            each rule with a policy          1 RL.ASK
 *            one refuses                      the others are given back; 429
 * response   leases are released, budgets settled, whether it is finished, failed or left
 * ```
 *
 * A cluster wants the keys of a call in one slot, so a key there is `name:{caller}`. Rules for several callers are asked
 * one after another.
 */

import { checkFlag, checkFunction, known, shown, type Names } from '../call/arguments.js'
import type { Fields } from '../decide/headers.js'
import { ConfigurationError } from '../errors.js'
import type { RateLimiter } from '../limiter.js'
import type { Locals } from '../local/local.js'
import type { Connected } from '../taken/connected.js'
import { slotOf } from '../wire/slots.js'
import { exposed } from './cors.js'
import { admitted, oneByOne, refused, unavailable, type Passage, type Told } from './passage.js'
import { askedBy, checkRules, claim, hasRate, type AskedLimit, type AskedPolicy, type Rule } from './rules.js'
import { checkShed, ShedStep, type Shed } from './shed.js'
import { Stack, type HeaderStyle } from './stack.js'
import { LocalStep, LimitsStep, PolicyStep, type Spent, type Step } from './steps.js'

export { combinedHeaders, type Named } from '../decide/headers.js'
export { endWith, type NodeResponse } from './over.js'
export type { Passage } from './passage.js'
export type { Refusal } from './response.js'
export { UNLIMITED } from './rules.js'
export type { LimitRule, PerRequest, PolicyRule, Rule, Unlimited } from './rules.js'
export type { Shed } from './shed.js'
export { Stack, type HeaderStyle } from './stack.js'
export type { Spent } from './steps.js'

/** What a middleware is made of. */
export interface GateOptions<R> {
  /** Asks the server. Its `fail`, `timeout`, `breaker` and `prefix` are those of the middleware. */
  limiter: RateLimiter
  /** What limits a request. All that are for it must admit. */
  rules: readonly Rule<R>[]
  /** Throws out the least important requests while the workers are overloaded. */
  shed?: Shed<R> | undefined
  /** Lets a request through without asking, such as one for a check of health. */
  skip?: ((request: R) => boolean | Promise<boolean>) | undefined
  /**
   * The headers of responses. `draft`, the default: `RateLimit-Policy` and `RateLimit`. `legacy`: `X-RateLimit-Limit`,
   * `X-RateLimit-Remaining` and `X-RateLimit-Reset`, in Unix seconds, of one limit. `off`: neither. A refusal has `Retry-After`.
   */
  headers?: HeaderStyle | undefined
  /**
   * Whether the preflights of browsers are limited, which are `OPTIONS` with `Access-Control-Request-Method`. By default they pass
   * unasked: browsers send them by themselves, and without what says who asks.
   */
  preflights?: boolean | undefined
  /** Whether scripts of other origins may read the headers: `Access-Control-Expose-Headers` then names them, too. */
  expose?: boolean | undefined
}

/** What a request is. */
export interface EnterOptions {
  /** It is the handshake of a WebSocket, so it is for the rules without `websocket: false` only. */
  websocket?: boolean | undefined
  /** It is the preflight of a browser, which passes unasked unless the gate has the option `preflights`. */
  preflight?: boolean | undefined
}

const OF_GATE: Names<GateOptions<never>> = { limiter: true, rules: true, shed: true, skip: true, headers: true, preflights: true, expose: true }
// What only the middleware has.
const OF_WEB = { onRefused: true } as const
const STYLES = ['draft', 'legacy', 'off']
// The `Retry-After` without an answer, in ms.
const SOON = 1000

/** Decides about requests. */
export class Gate<R> {
  readonly #to: Connected
  readonly #locals: Locals
  readonly #rules: readonly Rule<R>[]
  readonly #shed: Shed<R> | undefined
  readonly #skip: GateOptions<R>['skip']
  readonly #style: HeaderStyle
  readonly #cors: Pick<GateOptions<R>, 'preflights' | 'expose'>
  readonly #withLeases = new Set<string>()
  #saidTwice = false

  /**
   * The rules are checked against the server by {@link RateLimiter.ready}. No request waits for that.
   *
   * @throws {@link ConfigurationError} if a rule or the shedder is wrong; it is named
   */
  constructor(options: GateOptions<R>) {
    const { limiter, rules, shed, skip, headers = 'draft', preflights, expose } = known('options', options, { ...OF_GATE, ...OF_WEB }, ['limiter'])
    const { onRefused } = options as { onRefused?: unknown }
    if (typeof limiter?.limits !== 'function') throw new ConfigurationError(`limiter must be a RateLimiter, not ${shown(limiter)}`)
    checkRules(rules)
    if (shed !== undefined) checkShed(shed)
    if (rules.length === 0 && shed === undefined)
      throw new ConfigurationError('there are neither rules nor a shed, so nothing would be limited')
    if (skip !== undefined) checkFunction('skip', skip)
    if (onRefused !== undefined) checkFunction('onRefused', onRefused)
    if (!STYLES.includes(headers)) throw new ConfigurationError(`headers must be one of ${STYLES.join(', ')}, not ${shown(headers)}`)
    checkFlag('preflights', preflights)
    checkFlag('expose', expose)
    const { core } = limiter.connected
    if (shed !== undefined) core.checkOtherwise('load shedding')
    for (const rule of rules) if (!hasRate(rule)) core.checkOtherwise(`rule '${rule.name}'`)
    this.#to = limiter.connected
    this.#locals = limiter.locals
    this.#rules = rules
    this.#shed = shed
    this.#skip = skip
    this.#style = headers
    this.#cors = { preflights, expose }
    claim(limiter.connected.claims, rules)
    limiter.connected.readiness.add(rules)
  }

  /**
   * Decides about a request. It is charged, also if another one with the same object was before, such as a message of a socket.
   *
   * @param spent - where the handler counts, if there is a gate before this one
   * @param stack - one that only the gates of this request get, in their order. With it their headers add up, and what stands
   *   before the request twice is asked and charged once
   * @param options - what the request is
   * @throws {@link ConfigurationError} or {@link CallError} if a rule is wrong
   */
  async enter(request: R, spent?: Spent | null, stack: Stack = new Stack(), options: EnterOptions = {}): Promise<Passage> {
    return stack.stop(() => this.#enter(request, spent ?? {}, { stack, style: this.#style, to: this.#to }, options))
  }

  /** The headers of a response. With the option `expose`, `Access-Control-Expose-Headers` is what it was before, and their names. */
  exposed(headers: Readonly<Fields>, before?: unknown): Readonly<Fields> {
    return this.#cors.expose ? exposed(headers, this.#style, before) : headers
  }

  async #enter(request: R, spent: Spent, told: Told, { websocket = false, preflight = false }: EnterOptions): Promise<Passage> {
    const asked: Step[] = []
    const silent = new Set<string>()
    let wait = 0
    if ((preflight && !this.#cors.preflights) || (await this.#skip?.(request))) return admitted([], spent, 0, told)
    for (const step of await this.#steps(request, told.stack, websocket)) {
      const node = this.#to.channel.nodeOf(this.#to.prefix + step.key)
      // What did not answer would not answer the other steps either.
      if (silent.has(node)) continue
      const decision = await step.ask(silent.size === 0).catch(async (error: unknown) => {
        await undo(asked)
        throw error
      })
      const { allowed, answered, error, retryAfter } = decision
      if (!allowed) {
        await undo(answered ? asked : [...asked, step])
        if (!answered) return unavailable(SOON, told)
        return step instanceof ShedStep ? unavailable(step.retryAfter, told) : refused([...asked, step], told)
      }
      asked.push(step)
      wait = Math.max(wait, retryAfter ?? 0)
      if (error !== undefined && error.kind !== 'holds' && !(step instanceof LocalStep)) silent.add(node)
    }
    if (asked.length > 0 && this.#to.isClosed) {
      await undo(asked)
      this.#to.throwIfClosed()
    }
    return admitted(asked, spent, wait, told)
  }

  async #steps(request: R, stack: Stack, isHandshake: boolean): Promise<Step[]> {
    const { isCluster } = this.#to.channel.client
    const keyOf = (name: string, caller: string) => (isCluster ? `${name}:{${caller}}` : `${name}:${caller}`)
    const locals: LocalStep[] = []
    const limits: AskedLimit[] = []
    const policies: AskedPolicy[] = []
    for (const rule of this.#rules) {
      if (isHandshake && rule.websocket === false) continue
      const asked = await askedBy(rule, request, keyOf)
      if (asked === undefined || !this.#isFirst(rule, `rule '${rule.name}'`, stack)) continue
      if (!('limiter' in asked)) policies.push(asked)
      else if (asked.local === undefined) limits.push(asked)
      else if (asked.cost > 0) locals.push(this.#local(asked, asked.local))
    }
    const id = this.#to.runtime.id()
    // Those with leases come last, since the others of their limits have no refund.
    policies.sort((one, other) => Number(this.#withLeases.has(one.policy)) - Number(this.#withLeases.has(other.policy)))
    return [
      ...locals,
      ...this.#shedding(request, stack),
      ...this.#bySlot(limits).map((group) => new LimitsStep(this.#to, group, id)),
      ...policies.map((one) => new PolicyStep(this.#to, one, id, this.#withLeases)),
    ]
  }

  #shedding(request: R, stack: Stack): Step[] {
    const shed = this.#shed
    return shed === undefined || !this.#isFirst(shed, `shed '${shed.key}'`, stack) ? [] : [new ShedStep(this.#to, shed, request)]
  }

  /** Whether no gate has asked this about the request before. What stands before a request twice is asked and charged once. */
  #isFirst(one: object, what: string, stack: Stack): boolean {
    if (stack.isFirst(this.#to, one)) return true
    if (!this.#saidTwice) this.#to.core.log.warn('twice', `${what} stands before a request twice: it is asked once`)
    this.#saidTwice = true
    return false
  }

  #local(asked: AskedLimit, processes: number): LocalStep {
    return new LocalStep(this.#locals.find(asked.key, asked.limiter, { processes }), asked)
  }

  #bySlot(asked: readonly AskedLimit[]): AskedLimit[][] {
    const { channel, prefix } = this.#to
    const groups = new Map<number, AskedLimit[]>()
    for (const one of asked) {
      const number = channel.client.isCluster ? slotOf(prefix + one.key) : 0
      groups.set(number, [...(groups.get(number) ?? []), one])
    }
    return [...groups.values()]
  }
}

async function undo(steps: readonly Step[]): Promise<void> {
  await oneByOne(steps, (step) => step.undo())
}
