/** The steps of a request: each can be asked, undone, and ended after the response. */

import { release, settle, settleAsk } from '../call/endings.js'
import { can } from '../call/facts.js'
import { Limit } from '../call/limit.js'
import { Concurrent } from '../call/limiters.js'
import type { Outcome } from '../call/options.js'
import { withId } from '../call/questions.js'
import { span } from '../call/settings.js'
import type { Limiter } from '../call/values.js'
import type { Decision } from '../decide/decision.js'
import type { Answer } from './stack.js'
import { CallError } from '../errors.js'
import type { Local } from '../local/local.js'
import type { Connected } from '../taken/connected.js'
import { Renewal } from '../taken/renewals.js'
import type { Asked, AskedLimit, AskedPolicy } from './rules.js'

/** What handlers count, by the names of the rules. */
export type Spent = Record<string, number>
/** What a rule's request cost in the end. Nothing: the estimate stands. */
export type SpentOf = (asked: Asked) => number | undefined

/** A step of a request. */
export interface Step {
  /** A key of the call, which says what server gets it. */
  readonly key: string
  /** @param isCounted - whether the lack of an answer is counted */
  ask(isCounted: boolean): Promise<Decision>
  /** The answers by rule, for the headers. */
  readonly answers: readonly Answer[]
  /** Whether something is left to be settled or released. */
  readonly isOpen: boolean
  /** Gives back what was charged, since another step refused. Never throws. */
  undo(): Promise<void>
  /** Settles and releases, after the response. Never throws. */
  end(spentOf: SpentOf, outcome: Outcome): Promise<void>
}

// Only the server knows how long a policy's lease lasts. An uncertain one is searched for so long, in ms.
const LONGEST_LEASE = 3_600_000

/** What is known of a charge. */
type Charge = 'none' | 'certain' | 'maybe'

function chargeOf({ answered, allowed, error }: Decision): Charge {
  if (answered) return allowed ? 'certain' : 'none'
  return error?.maybeSent ? 'maybe' : 'none'
}

/** One `RL.MULTI` for rules whose keys share a slot. */
export class LimitsStep implements Step {
  answers: readonly Answer[] = []
  readonly #keys: string[]
  readonly #limiters: readonly Limiter[]
  readonly #hasBudget: boolean
  readonly #hold: string
  #charge: Charge = 'none'
  #renewals: readonly Renewal[] = []

  /** @param id - the id of the request's leases and holds */
  constructor(private readonly to: Connected, private readonly asked: readonly AskedLimit[], private readonly id: string) {
    this.#keys = asked.map(({ key }) => key)
    this.#limiters = asked.map(({ limiter }) => withId(limiter, id))
    this.#hasBudget = asked.some(({ estimate }) => estimate !== undefined)
    const holds = asked.flatMap(({ estimate, hold }) => (estimate === undefined ? [] : [hold]))
    this.#hold = holds.reduce((longest, one) => (span('hold', one) > span('hold', longest) ? one : longest), '1ms')
  }

  get key(): string {
    return this.#keys[0]!
  }

  async ask(isCounted: boolean): Promise<Decision> {
    const since = this.to.runtime.now()
    const limits = this.#limits(({ cost, estimate }) => estimate ?? cost)
    const hold = this.#hasBudget ? { id: this.id, ttl: this.#hold } : undefined
    const decision = await this.to.decide(this.to.questions.limits(this.#keys, limits, { hold }), isCounted)
    this.answers = decision.each.map((one, i) => [this.asked[i]!.name, one, this.asked[i]!.spread])
    this.#charge = chargeOf(decision)
    // The handler does not count on what may be taken without an answer, so it is released at once.
    if (this.#charge === 'maybe') void this.#release('IGNORE')
    // They are renewed until they are released.
    if (this.#charge === 'certain')
      this.#renewals = this.#leases.map(([key, { ttl }]) => new Renewal(this.to, key, ttl, this.id, since).begin())
    return decision
  }

  async undo(): Promise<void> {
    if (this.#charge === 'certain') await this.#release('IGNORE')
    await this.#settle(0, () => 1)
    await this.#refund()
  }

  async end(spentOf: SpentOf, outcome: Outcome): Promise<void> {
    if (this.#charge === 'certain') await this.#release(outcome)
    await this.#settle(1, (asked) => (asked.estimate === undefined ? asked.cost : counted(spentOf(asked), asked.estimate)))
  }

  get isOpen(): boolean {
    return this.#renewals.length > 0 || this.#hasHold
  }

  get #hasHold(): boolean {
    return this.#hasBudget && this.#charge !== 'none'
  }

  #limits(costOf: (asked: AskedLimit) => number): Limit[] {
    return this.asked.map((one, i) => limitOn(i + 1, this.#limiters[i]!, costOf(one)))
  }

  get #leases(): [key: string, lease: Concurrent][] {
    return this.#keys.flatMap((key, i) => {
      const limiter = this.#limiters[i]!
      return limiter instanceof Concurrent ? [[key, limiter] as [string, Concurrent]] : []
    })
  }

  async #release(outcome: Outcome): Promise<void> {
    for (const renewal of this.#renewals) renewal.stop()
    const leases = this.#leases
    if (leases.length === 0) return
    const ttl = Math.max(...leases.map(([, lease]) => span('ttl', lease.ttl)))
    const said = leases.some(([, { adapt }]) => adapt) ? outcome : 'OK'
    const call = release(this.to.prefix, leases.map(([key]) => key), this.id, said)
    await this.to.end(call, { ttl, certain: this.#charge === 'certain' })
  }

  /** @param cost - that of the limits without one of their own */
  async #settle(cost: number, costOf: (asked: AskedLimit) => number): Promise<void> {
    if (!this.#hasHold) return
    const times = { ttl: span('hold', this.#hold), certain: this.#charge === 'certain' }
    await this.to.end(settle(this.to.prefix, this.#keys, this.#limits(costOf), this.id, cost), times)
  }

  // Leases are released, a turn or a strike cannot be given back, and what is held is settled. A refund is not repeated: it
  // might give back twice.
  async #refund(): Promise<void> {
    const isRefunded = ({ limiter, cost }: AskedLimit) =>
      cost > 0 && can(limiter, 'refund') && !can(limiter, 'bans') && !(this.#hasBudget && can(limiter, 'hold'))
    const charged = this.asked.filter(isRefunded)
    if (this.#charge !== 'certain' || charged.length === 0) return
    const call = this.to.call('RL.MULTIREFUND').numbered(charged.map(({ key }) => key))
    await this.to.giveBack(call.limits(charged.map(({ limiter, cost }, i) => limitOn(i + 1, limiter, cost))))
  }
}

/** One `RL.ASK`. */
export class PolicyStep implements Step {
  answers: readonly Answer[] = []
  #charge: Charge = 'none'
  #isReleased = false

  /** @param withLeases - policies that are known to have leases. Those found out are added */
  constructor(
    private readonly to: Connected,
    private readonly asked: AskedPolicy,
    private readonly id: string,
    private readonly withLeases: Set<string>,
  ) {}

  get key(): string {
    return this.asked.key
  }

  async ask(isCounted: boolean): Promise<Decision> {
    const { name, key, policy, cost, estimate, hold, spread } = this.asked
    const held = estimate === undefined ? undefined : { id: this.id, ttl: hold }
    const ask = () => {
      const options = { cost: estimate ?? cost, hold: held, leaseId: this.#leaseId, full: true }
      return this.to.decide(this.to.questions.ask(key, policy, options), isCounted)
    }
    const decision = await ask().catch((error: unknown) => {
      if (!isReply(error, 'needs an ID') || this.#leaseId !== undefined) throw error
      this.withLeases.add(policy)
      return ask()
    })
    // Of several limits the headers have that which binds.
    if (decision.answered) this.answers = [[name, decision.each[(decision.binding ?? 0) - 1] ?? decision, spread]]
    this.#charge = chargeOf(decision)
    if (this.#charge === 'maybe') void this.#release()
    return decision
  }

  async undo(): Promise<void> {
    const { key, policy, cost, estimate } = this.asked
    await this.#release()
    await this.#settle(0)
    // The server refunds no policy with leases.
    if (this.#charge !== 'certain' || estimate !== undefined || this.#leaseId !== undefined || cost === 0) return
    await this.to.giveBack(this.to.call('RL.ASKREFUND').key(key).value(policy).option('COST', cost === 1 ? undefined : cost))
  }

  async end(spentOf: SpentOf): Promise<void> {
    await this.#release()
    await this.#settle(counted(spentOf(this.asked), this.asked.estimate ?? 0))
  }

  get isOpen(): boolean {
    return this.#charge !== 'none' && (this.asked.estimate !== undefined || this.#leaseId !== undefined)
  }

  get #leaseId(): string | undefined {
    return this.withLeases.has(this.asked.policy) ? this.id : undefined
  }

  async #release(): Promise<void> {
    if (this.#leaseId === undefined || this.#isReleased || this.#charge === 'none') return
    this.#isReleased = true
    await this.to.end(release(this.to.prefix, [this.key], this.id), { ttl: LONGEST_LEASE, certain: this.#charge === 'certain' })
  }

  async #settle(cost: number): Promise<void> {
    const { key, policy, estimate, hold } = this.asked
    if (estimate === undefined || this.#charge === 'none') return
    const times = { ttl: span('hold', hold), certain: this.#charge === 'certain' }
    await this.to.end(settleAsk(this.to.prefix, key, policy, this.id, cost, { leaseId: this.#leaseId }), times)
  }
}

/** What a rule takes from memory. It is given back if another step refuses. */
export class LocalStep implements Step {
  answers: readonly Answer[] = []
  readonly isOpen = false
  #decision: Decision | undefined

  constructor(private readonly local: Local, private readonly asked: AskedLimit) {}

  get key(): string {
    return this.local.key
  }

  async ask(): Promise<Decision> {
    const { name, cost, spread } = this.asked
    this.#decision = await this.local.take(cost)
    this.answers = [[name, this.#decision, spread]]
    return this.#decision
  }

  async undo(): Promise<void> {
    if (this.#decision?.allowed) await this.local.giveBack(this.asked.cost, this.#decision)
  }

  async end(): Promise<void> {}
}

/** A limit for one key. The cost of a limit that does not say is 1. */
function limitOn(on: number, limiter: Limiter, cost: number): Limit {
  return new Limit(limiter, { on, cost: cost === 1 ? undefined : cost })
}

/** What the handler counted, as a cost: the estimate if it counted nothing, or no number. */
function counted(spent: number | undefined, estimate: number): number {
  if (typeof spent !== 'number' || Number.isNaN(spent)) return estimate
  return Math.min(Math.max(0, Math.ceil(spent)), Number.MAX_SAFE_INTEGER)
}

function isReply(error: unknown, end: string): error is CallError {
  return error instanceof CallError && error.reply.endsWith(end)
}
