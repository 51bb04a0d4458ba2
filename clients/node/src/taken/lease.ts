/// <reference lib="esnext.disposable" preserve="true" />

/** Leases: at most n pieces of work at a time. A lease is renewed while it is held, and released on every path. */

import type { Call } from '../call/call.js'
import { release } from '../call/endings.js'
import type { LeaseOptions, Outcome } from '../call/options.js'
import { span } from '../call/settings.js'
import type { LeaseDecision } from '../decide/decision.js'
import { blocked } from '../wire/waits.js'
import type { Connected } from './connected.js'
import { Renewal } from './renewals.js'
import type { Endable } from './taken.js'

/** A lease that was granted, or work that was let through without an answer. */
export class Lease {
  readonly #to: Connected
  readonly #renewal: Renewal
  readonly #taken: Endable
  readonly #adapts: boolean
  #released: Promise<void> | undefined

  /** @internal */
  constructor(
    to: Connected,
    /** The key, without prefixes. */
    readonly key: string,
    /** The id of the lease. */
    readonly id: string,
    /** What the server replied. */
    readonly decision: LeaseDecision,
    renewal: Renewal,
    { renew: isRenewed = true, adapt = false }: LeaseOptions,
  ) {
    this.#adapts = adapt !== false
    this.#to = to
    this.#renewal = renewal
    this.#taken = { until: isRenewed ? Infinity : renewal.endsAt, end: () => this.release('IGNORE') }
    if (!decision.answered) return
    to.taken.add(this.#taken)
    if (isRenewed) renewal.begin()
  }

  /** Whether the lease is held for certain: the server said so, and it was neither lost nor released since. */
  get held(): boolean {
    const isOver = this.lost || this.#released !== undefined || this.#to.runtime.now() >= this.#renewal.endsAt
    return this.decision.answered && !isOver
  }

  /** Whether the lease ended before the work: a renewal found nothing, or none got through for a whole ttl. */
  get lost(): boolean {
    return this.#renewal.isLost
  }

  /** Aborted when the lease is {@link lost}. Pass it to what the work calls, such as `fetch`, so that it stops. */
  get signal(): AbortSignal {
    return this.#renewal.signal
  }

  /**
   * With the option `fence`: the fencing token, greater than those of all leases that the key had before. Renewals keep it. It stays
   * when the lease is lost, so that a database refuses what its holder still writes. `undefined` without an answer.
   */
  get fence(): number | undefined {
    return this.decision.fence
  }

  /** Extends the lease to a whole ttl from now. Returns whether it is still held. */
  async renew(): Promise<boolean> {
    if (this.decision.answered && !this.lost && this.#released === undefined) await this.#renewal.renew()
    return this.held
  }

  /**
   * Ends the lease, also one that is lost: the server may have it still. Waits at most for the limiter's time-out, and does not
   * throw without an answer: the release is then repeated in the background.
   *
   * @param outcome - with `adapt`: how the work ended
   * @throws {@link ConfigurationError} if the outcome is none
   */
  async release(outcome: Outcome = 'OK'): Promise<void> {
    const call = release(this.#to.prefix, [this.key], this.id, this.#adapts ? outcome : 'OK')
    this.#released ??= this.#release(call)
    await this.#released
  }

  /** The same as {@link release}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }

  async #release(call: Call): Promise<void> {
    this.#renewal.stop()
    // What may have been taken without an answer is being released since then.
    if (!this.decision.answered) return
    this.#to.taken.delete(this.#taken)
    await this.#to.end(call, { ttl: this.#renewal.ttl, certain: true })
  }
}

/** Takes a lease. Throws if it is refused, and without an answer if the limiter fails closed. */
export async function acquire(to: Connected, key: string, options: LeaseOptions): Promise<Lease> {
  const { runtime } = to
  const id = runtime.id()
  const question = to.questions.lease(key, id, options)
  const asked = runtime.now()
  const ttl = blocked(question.call) + span('ttl', options.ttl)
  // No work was done under it.
  const undone = release(to.prefix, [key], id, options.adapt ? 'IGNORE' : 'OK')
  const undo = (isGivenUp: boolean) => void to.end(undone, { ttl, certain: false, isGivenUp })
  const decision = await to.take(question, undo)
  // The work does not count on it, so it is released at once.
  if (decision.error?.maybeSent) undo(false)
  // A lease begins when it is granted. If that was after a wait, it is not known when.
  const since = question.call.block === undefined ? asked : runtime.now()
  const lease = new Lease(to, key, id, decision, new Renewal(to, key, options.ttl, id, since), options)
  if (to.isClosed) {
    await lease.release('IGNORE')
    to.throwIfClosed()
  }
  return lease
}
