/** The renewals of a lease: every third of its ttl, which leaves two more attempts if there is no reply. */

import type { Call } from '../call/call.js'
import { span } from '../call/settings.js'
import type { Duration } from '../call/values.js'
import { CallError, RateLimitError, Unavailable } from '../errors.js'
import type { Cancel } from '../runtime.js'
import type { Connected } from './connected.js'
import type { Outcome } from './endings.js'

/** Renews a lease, and knows until when it lasts. Times are in ms. */
export class Renewal {
  /** The ttl of the lease. */
  readonly ttl: number
  readonly #call: Call
  #endsAt: number
  readonly #lost = new AbortController()
  #isStopped = false
  #cancel: Cancel = () => {}

  /** @param since - when the lease began */
  constructor(private readonly to: Connected, key: string, ttl: Duration, id: string, since: number) {
    this.ttl = span('ttl', ttl)
    this.#call = to.call('RL.RENEW').key(key).duration(ttl).value(id)
    this.#endsAt = since + this.ttl
  }

  /** When the lease ends unless it is renewed. */
  get endsAt(): number {
    return this.#endsAt
  }

  /** Whether the lease ended before its release: a renewal found nothing, or none got through for a whole ttl. */
  get isLost(): boolean {
    return this.signal.aborted
  }

  /** Aborted when the lease is lost. */
  get signal(): AbortSignal {
    return this.#lost.signal
  }

  /** Renews in the background from now on. */
  begin(): this {
    this.#after(this.ttl / 3)
    return this
  }

  /** Renews once. */
  async renew(): Promise<void> {
    const sent = this.to.runtime.now()
    this.#heard({ reply: await this.to.send(this.#call) }, sent)
  }

  /** Renews no more. */
  stop(): void {
    this.#isStopped = true
    this.#cancel()
  }

  #after(delay: number): void {
    this.#cancel = this.to.runtime.later(delay, () => void this.#renewNow())
  }

  async #renewNow(): Promise<void> {
    const sent = this.to.runtime.now()
    const outcome = await this.to.outcome(this.#call)
    // Nothing came of it: the limiter is closed.
    if (outcome !== undefined) this.#heard(outcome, sent)
    if (outcome === undefined || this.isLost || this.#isStopped) return
    this.#after(outcome instanceof Unavailable ? this.ttl / 9 : this.ttl / 3)
  }

  #heard(outcome: Outcome, sent: number): void {
    if (this.#isStopped) return
    if (outcome instanceof CallError) return this.#lose(outcome.reply, outcome.node)
    if (outcome instanceof Unavailable) {
      if (this.to.runtime.now() >= this.#endsAt) this.#lose('no answer for its whole ttl', outcome.node)
    } else if (Number(outcome.reply) === 1) this.#endsAt = sent + this.ttl
    else this.#lose('a renewal found no lease', this.to.channel.nodeOf(this.#call.keys[0]))
  }

  #lose(reason: string, node: string): void {
    if (this.isLost) return
    this.to.core.counters.leasesLost += 1
    this.to.core.log.about(this.#call, node, 'lease lost', reason)
    this.#lost.abort(new RateLimitError(`the lease is lost: ${reason}`))
  }
}
