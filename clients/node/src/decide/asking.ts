/**
 * Questions to the server, and the answer when there is none.
 *
 * @module
 */

import type { Call } from '../call/call.js'
import type { Core } from '../core.js'
import { AskDecision, Decision, type Integers } from './decision.js'
import { Unavailable } from '../errors.js'
import { can } from '../call/facts.js'
import type { Limiter } from '../call/values.js'
import { shownKey } from './log.js'
import * as replies from './replies.js'
import type { Place } from './refusals.js'

/** How a decision is made. */
export interface Reading<D extends Decision> {
  /** Makes a decision of the reply. */
  read: (reply: unknown) => D
  /** Makes one without a reply: of zeros, and why. */
  otherwise: (integers: Integers, error: Error) => D
}

/** A question. */
export interface Question<D extends Decision> extends Reading<D> {
  call: Call
  /** What it is about, for the log. */
  key: string
  signal?: AbortSignal | undefined
  /** Whether a refusal may be answered from memory. */
  cached?: boolean
  /** The item of a sketch. */
  item?: string | undefined
  /** A look, which is not counted. */
  isLook?: boolean
}

/** Asks, and decides by itself if there is no answer. */
export class Questions {
  constructor(private readonly core: Core) {}

  /** Asks. Throws what is not a lack of an answer: a wrong call, or the reason of the signal. */
  async decide<D extends Decision>(question: Question<D>): Promise<D> {
    const { call, read, signal, isLook = false } = question
    const { channel, refusals } = this.core
    const { counters } = channel
    const place = question.cached && refusals !== undefined ? placeOf(question) : undefined
    const known = place && refusals?.find(place, performance.now())
    if (known !== undefined) {
      counters.asked += 1
      counters.refused += 1
      counters.cached += 1
      return known.decision.aged(known.age) as D
    }
    const asked = refusals?.generation
    let decision: D
    try {
      decision = read(await this.core.send(call, { signal }))
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      return this.undecided(question, error)
    }
    if (!isLook) {
      counters.asked += 1
      counters[decision.allowed ? 'allowed' : 'refused'] += 1
    }
    const { allowed, retryAfter } = decision
    if (place !== undefined && !allowed) refusals?.add(place, decision, retryAfter, performance.now(), asked)
    return decision
  }

  /** What `fail` says. */
  undecided<D extends Decision>({ key, otherwise, isLook = false }: Question<D>, error: Error): D {
    return otherwise([this.core.goesOn(shownKey(key), error, !isLook) ? 0 : 1, 0, 0, 0, 0], error)
  }
}

function placeOf({ call, item }: Question<Decision>): Place {
  return { keys: call.keys, group: JSON.stringify([call.keys, item]), call: JSON.stringify(call.words) }
}

/** Whether a refusal may be remembered: it holds until its time, and asking again would change nothing. */
export function isRemembered(limiter: Limiter): boolean {
  return !can(limiter, 'early') && !can(limiter, 'bans') && !can(limiter, 'counts_refused')
}

/** How a reply about a limiter or a policy becomes a decision, and what stands in for it. */
export function reading(of: Limiter): Reading<Decision>
export function reading(of: string): Reading<AskDecision>
export function reading(of: Limiter | string): Reading<Decision>
export function reading(of: Limiter | string): Reading<Decision> {
  if (typeof of === 'string') {
    return { read: replies.ask, otherwise: (integers, error) => new AskDecision(integers, 0, undefined, undefined, error) }
  }
  return { read: (reply) => replies.decision(reply, of), otherwise: (integers, error) => new Decision(integers, of, error) }
}
