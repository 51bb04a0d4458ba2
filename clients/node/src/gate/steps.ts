/**
 * The questions of a request: each can be asked, undone, and ended after the response.
 *
 * @module
 */

import { Concurrent } from '../commands.js'
import { AskDecision, MultiDecision, type Decision, type Integers } from '../decide/decision.js'
import { CallError, Unavailable } from '../errors.js'
import { can } from '../call/facts.js'
import type { Asked } from './rules.js'
import type { Named } from '../decide/headers.js'
import { Lease } from '../taken/lease.js'
import { Limit } from '../call/limit.js'
import { milliseconds, type Duration, type Limiter } from '../call/values.js'
import { shownKey } from '../decide/log.js'
import type { RateLimiter } from '../limiter.js'

/** What handlers count, by the names of the rules. */
export type Spent = Record<string, number>
/** What the handler counted for a rule, if it did. */
export type SpentOf = (name: string) => number | undefined

/** A question of a request. */
export interface Step {
  ask(): Promise<Decision>
  /** The answers by rule, for the headers. */
  readonly answers: readonly Named[]
  /** Whether something is left to be settled or released, unless it is a lease that knows its own end. */
  readonly isOpen: boolean
  /** Gives back what was charged, since another step refused. Never throws. */
  undo(): Promise<void>
  /** Settles and releases, after the response. Never throws. */
  end(spentOf: SpentOf): Promise<void>
}

// Only the server knows how long a policy's lease lasts. An uncertain one is searched for so long.
const LONGEST_LEASE = '1h'

/** What is known of a charge. */
type Charge = 'none' | 'certain' | 'maybe'

function chargeOf({ answered, allowed, error }: Decision): Charge {
  if (answered) return allowed ? 'certain' : 'none'
  return error instanceof Unavailable && error.maybeSent ? 'maybe' : 'none'
}

/** One `RL.MULTI` for rules whose keys share a slot. */
export class MultiStep implements Step {
  answers: readonly Named[] = []
  readonly #limiters: readonly Limiter[]
  readonly #hasBudget: boolean
  readonly #hold: Duration
  #charge: Charge = 'none'
  #leases: readonly Lease[] = []

  /** @param id - the id of the request's leases and holds */
  constructor(
    private readonly limiter: RateLimiter,
    private readonly asked: readonly Asked[],
    private readonly id: string,
  ) {
    this.#limiters = asked.map(({ limiter }) => withId(limiter!, id))
    this.#hasBudget = asked.some(({ estimate }) => estimate !== undefined)
    this.#hold = `${Math.max(...asked.map(({ hold }) => hold))}ms`
  }

  async ask(): Promise<Decision> {
    const since = performance.now()
    const limits = this.#limits(({ cost, estimate }) => estimate ?? cost)
    const hold = this.#hasBudget ? { id: this.id, ttl: this.#hold } : undefined
    const decision = await this.limiter
      .limits(this.#keys, limits, { hold })
      .catch((error: Error) => new MultiDecision(tooMany(this.limiter, this.asked[0]!.key, error), [], undefined, error))
    this.answers = decision.each.map((one, i) => [this.asked[i]!.name, one])
    this.#charge = chargeOf(decision)
    if (this.#charge === 'maybe') this.#releaseUncertain()
    if (this.#charge === 'certain') this.#leases = this.#taken(decision, since)
    return decision
  }

  async undo(): Promise<void> {
    await Promise.all([this.#release(), this.#settle(() => 0), this.#refund()])
  }

  async end(spentOf: SpentOf): Promise<void> {
    const actual = ({ name, cost, estimate }: Asked) => (estimate === undefined ? cost : counted(spentOf(name), estimate))
    await Promise.all([this.#release(), this.#settle(actual)])
  }

  get isOpen(): boolean {
    return this.#hasBudget && this.#charge !== 'none'
  }

  get #keys(): string[] {
    return this.asked.map(({ key }) => key)
  }

  #limits(costOf: (asked: Asked) => number): Limit[] {
    return this.asked.map((one, i) => limitOn(i + 1, this.#limiters[i]!, costOf(one)))
  }

  // They are renewed until they are released.
  #taken(decision: Decision, since: number): Lease[] {
    const { core } = this.limiter
    return this.#ownLeases.map(({ key, ttl }) => new Lease(core, key, this.id, decision, { since, renew: true, ttl }))
  }

  // The handler does not count on what may be taken without an answer, so it is released at once.
  #releaseUncertain(): void {
    for (const { key, ttl } of this.#ownLeases) void this.limiter.core.release([key], this.id, { within: ttl, certain: false })
  }

  // Those that were given the request's id.
  get #ownLeases(): { key: string; ttl: number }[] {
    return this.asked.flatMap(({ key, limiter: given }, i) => {
      const limiter = this.#limiters[i]!
      return limiter === given ? [] : [{ key, ttl: milliseconds('ttl', (limiter as Concurrent).ttl) }]
    })
  }

  async #release(): Promise<void> {
    await Promise.all(this.#leases.map((lease) => lease.release()))
  }

  async #settle(costOf: (asked: Asked) => number): Promise<void> {
    if (!this.isOpen) return
    const options = { within: this.#hold, certain: this.#charge === 'certain', cost: 1 }
    await this.limiter.settle(this.#keys, this.#limits(costOf), this.id, options)
  }

  // Leases are released, a turn or a strike cannot be given back, and what is held is settled. A refund is not repeated: it
  // might give back twice.
  async #refund(): Promise<void> {
    const isRefunded = (limiter: Limiter) => can(limiter, 'refund') && !can(limiter, 'bans') && !(this.#hasBudget && can(limiter, 'hold'))
    const charged = this.asked.filter(({ limiter }) => isRefunded(limiter!))
    if (this.#charge !== 'certain' || charged.length === 0) return
    const limits = charged.map(({ limiter, cost }, i) => limitOn(i + 1, limiter!, cost))
    const keys = charged.map(({ key }) => key)
    await once(this.limiter, this.limiter.commands.multiRefund(keys, limits))
  }
}

/** One `RL.ASK`. */
export class PolicyStep implements Step {
  answers: readonly Named[] = []
  #charge: Charge = 'none'
  #isReleased = false

  /** @param withLeases - policies that are known to have leases. Those found out are added */
  constructor(
    private readonly limiter: RateLimiter,
    private readonly asked: Asked,
    private readonly id: string,
    private readonly withLeases: Set<string>,
  ) {}

  async ask(): Promise<Decision> {
    const { name, key, cost, estimate, hold } = this.asked
    const held = estimate === undefined ? undefined : { id: this.id, ttl: `${hold}ms` }
    const send = () => this.limiter.ask(key, this.#policy, { cost: estimate ?? cost, hold: held, leaseId: this.#leaseId })
    const decision = await send()
      .catch((error: unknown) => {
        if (!isReply(error, 'needs an ID') || this.#leaseId !== undefined) throw error
        this.withLeases.add(this.#policy)
        return send()
      })
      .catch((error: Error) => new AskDecision(tooMany(this.limiter, key, error), 0, undefined, undefined, error))
    if (decision.answered) this.answers = [[name, decision]]
    this.#charge = chargeOf(decision)
    if (this.#charge === 'maybe') void this.#release()
    return decision
  }

  async undo(): Promise<void> {
    const { key, cost, estimate } = this.asked
    await Promise.all([this.#release(), this.#settle(0)])
    // The server refunds no policy with leases.
    if (this.#charge !== 'certain' || estimate !== undefined || this.#leaseId !== undefined) return
    await once(this.limiter, this.limiter.commands.askRefund(key, this.#policy, { cost }))
  }

  async end(spentOf: SpentOf): Promise<void> {
    const { name, estimate = 0 } = this.asked
    await Promise.all([this.#release(), this.#settle(counted(spentOf(name), estimate))])
  }

  get isOpen(): boolean {
    return this.#charge !== 'none' && (this.asked.estimate !== undefined || this.#leaseId !== undefined)
  }

  get #policy(): string {
    return this.asked.policy!
  }

  get #leaseId(): string | undefined {
    return this.withLeases.has(this.#policy) ? this.id : undefined
  }

  async #release(): Promise<void> {
    if (this.#leaseId === undefined || this.#isReleased || this.#charge === 'none') return
    this.#isReleased = true
    await this.limiter.release(this.asked.key, this.id, { within: LONGEST_LEASE, certain: this.#charge === 'certain' })
  }

  async #settle(actual: number): Promise<void> {
    const { key, estimate, hold } = this.asked
    if (estimate === undefined || this.#charge === 'none') return
    const options = { within: `${hold}ms`, certain: this.#charge === 'certain', leaseId: this.#leaseId }
    await this.limiter.settleAsk(key, this.#policy, this.id, actual, options)
  }
}

/** A limit for one key. The cost of a limit that does not say is 1. */
function limitOn(on: number, limiter: Limiter, cost: number): Limit {
  return new Limit(limiter, { on, cost: cost === 1 ? undefined : cost })
}

/** A lease without an id gets that of the request. */
function withId(limiter: Limiter, id: string): Limiter {
  if (limiter.name !== 'CONCURRENT') return limiter
  const lease = limiter as Concurrent
  return lease.id === undefined ? new Concurrent(lease.capacity, lease.ttl, { id, reserved: lease.reserved, critical: lease.critical }) : lease
}

/** What the handler counted, as a cost: the estimate if it counted nothing, or no number. */
function counted(spent: number | undefined, estimate: number): number {
  if (typeof spent !== 'number' || Number.isNaN(spent)) return estimate
  return Math.min(Math.max(0, Math.ceil(spent)), Number.MAX_SAFE_INTEGER)
}

/** `ERR too many holds` is a bound of the server, and no mistake of the rule: it is as no answer. Rethrows other errors. */
function tooMany(limiter: RateLimiter, key: string, error: Error): Integers {
  if (!isReply(error, 'too many holds')) throw error
  return [limiter.core.goesOn(shownKey(key), error) ? 0 : 1, 0, 0, 0, 0]
}

function isReply(error: unknown, end: string): boolean {
  return error instanceof CallError && error.reply.endsWith(end)
}

async function once(limiter: RateLimiter, call: Promise<unknown>): Promise<void> {
  await call.catch((error: Error) => limiter.core.channel.log.warn('refund', `not given back: ${error.message}`))
}
