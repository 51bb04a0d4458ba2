/**
 * Questions to the server, and the answer when there is none.
 *
 * @module
 */

import type { Call } from './call.js'
import type { Core } from './core.js'
import { AskDecision, Decision, type Integers } from './decision.js'
import { Unavailable } from './errors.js'
import type { Limiter } from './limiter.js'
import { Refusals } from './refusals.js'
import * as replies from './replies.js'

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
  /** What it is about, for the log and the memory of refusals. */
  key: string
  signal?: AbortSignal | undefined
  /** Whether a refusal may be answered from memory. */
  cached?: boolean
  /** A look, which is not counted. */
  isLook?: boolean
}

/** Asks, and decides by itself if there is no answer. */
export class Questions {
  readonly #refusals: Refusals<Decision> | undefined

  constructor(private readonly core: Core) {
    const { cache } = core.settings
    this.#refusals = cache === null ? undefined : new Refusals(cache.keys, cache.longest)
  }

  /** Asks. Throws what is not a lack of an answer: a wrong call, or the reason of the signal. */
  async decide<D extends Decision>(question: Question<D>): Promise<D> {
    const { call, key, read, signal, isLook = false } = question
    const { counters } = this.core.channel
    if (!isLook) counters.asked += 1
    const words = question.cached && this.#refusals !== undefined ? call.words.join('\0') : undefined
    const asked = performance.now()
    const known = words === undefined ? undefined : this.#refusals?.find(key, words, asked)
    if (known !== undefined) {
      counters.refused += 1
      counters.cached += 1
      return known.decision.aged(known.age) as D
    }
    let decision: D
    try {
      decision = read(await this.core.channel.send(call, { signal }))
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      return this.#unanswered(question, error)
    }
    if (!isLook) counters[decision.allowed ? 'allowed' : 'refused'] += 1
    const { allowed, retryAfter } = decision
    if (words !== undefined && !allowed && retryAfter) {
      this.#refusals?.add(key, words, decision, retryAfter, performance.now(), asked)
    }
    return decision
  }

  /** Forgets refusals of keys, to which something was given back. Several of a call are one name, with spaces. */
  forget(...keys: string[]): void {
    for (const key of keys) this.#refusals?.forget(key, performance.now())
  }

  #unanswered<D extends Decision>({ key, otherwise, isLook }: Question<D>, error: Unavailable): D {
    const { channel, settings } = this.core
    if (!isLook) channel.counters[settings.isOpen ? 'failedOpen' : 'failedClosed'] += 1
    channel.log.warn(
      `unanswered ${error.kind}`,
      `${error.message}, for '${key}'; ${settings.isOpen ? 'let through' : 'not let through'}`,
    )
    return otherwise([settings.isOpen ? 0 : 1, 0, 0, 0, 0], error)
  }
}

/** Whether a refusal may be remembered: it holds until its time, and asking again would change nothing. */
export function isRemembered(limiter: Limiter): boolean {
  return limiter.name !== 'CONCURRENT' && limiter.name !== 'PENALTY' && !limiter.words.includes('COUNTREFUSED')
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
