/** Runs endings in the background. Its timers do not keep the process alive. */

import type { Call } from '../call/call.js'
import type { Core } from '../decide/core.js'
import { Unavailable } from '../errors.js'
import type { Cancel, Runtime } from '../runtime.js'
import type { Ending, Outcome } from './endings.js'

// The most endings that wait. A server that is away for long must not take all memory.
const MOST = 10_000

/** Sends endings, and repeats them. */
export class Background {
  readonly #waiting = new Map<Ending, Cancel>()
  #isClosed = false

  constructor(
    private readonly send: (call: Call) => Promise<Outcome | undefined>,
    private readonly core: Core,
    private readonly runtime: Runtime,
  ) {}

  /** Sends an ending, and repeats it in the background if it is not done. Never throws. */
  async end(ending: Ending, isFirst = true): Promise<void> {
    const outcome = await this.send(ending.call)
    const delay = outcome && ending.after(outcome, this.runtime.now())
    if (outcome === undefined || delay === undefined) return
    const { call } = ending
    const { log } = this.core
    if (this.#isClosed) {
      if (outcome instanceof Unavailable) log.failed(call, 'not repeated, since the limiter closes', outcome)
    } else if (this.#waiting.size >= MOST) {
      log.about(call, outcome instanceof Unavailable ? outcome.node : '', 'given up', `${MOST} calls wait in the background`)
    } else {
      if (isFirst && outcome instanceof Unavailable) log.failed(call, 'repeated in the background', outcome)
      this.#waiting.set(ending, this.runtime.later(delay, () => void this.#repeat(ending)))
    }
  }

  /** From now on nothing is repeated. */
  stop(): void {
    this.#isClosed = true
    for (const cancel of this.#waiting.values()) cancel()
  }

  /** Tries what waited when it was stopped. */
  async tryOnceMore(): Promise<void> {
    await Promise.all([...this.#waiting.keys()].map((ending) => this.end(ending)))
  }

  async #repeat(ending: Ending): Promise<void> {
    this.#waiting.delete(ending)
    this.core.counters.releasesRetried += 1
    await this.end(ending, false)
  }
}
