/** Runs endings in the background. Its timers do not keep the process alive. */

import type { Call } from '../call/call.js'
import type { Core } from '../decide/core.js'
import { CallError, Unavailable } from '../errors.js'
import type { Cancel, Runtime } from '../runtime.js'
import type { Ending, Outcome } from './endings.js'

// The most endings that wait. A server that is away for long must not take all memory.
const MOST = 10_000

/** Sends endings, and repeats them. */
export class Background {
  readonly #waiting = new Map<Ending, Cancel>()
  readonly #running = new Set<Promise<unknown>>()
  #isClosed = false

  constructor(
    private readonly send: (call: Call) => Promise<unknown>,
    private readonly core: Core,
    private readonly runtime: Runtime,
  ) {}

  /** Sends an ending, and repeats it in the background if it is not done. Never throws. */
  async end(ending: Ending): Promise<void> {
    const outcome = await this.#outcome(ending)
    const delay = outcome && ending.after(outcome, this.runtime.now())
    if (outcome === undefined || delay === undefined) return
    if (!this.#isClosed && this.#waiting.size >= MOST) {
      const { node } = outcome instanceof Unavailable ? outcome : { node: '' }
      this.core.log.about(ending.call, node, 'given up', `${MOST} calls wait in the background`)
      return
    }
    if (outcome instanceof Unavailable) {
      this.core.log.failed(ending.call, this.#isClosed ? 'not repeated, since the limiter closes' : 'repeated in the background', outcome)
    }
    this.#later(ending, delay)
  }

  /** Waits for what is under way, tries what is waiting once more, and ends. */
  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all(this.#running)
    const endings = [...this.#waiting.keys()]
    for (const cancel of this.#waiting.values()) cancel()
    this.#waiting.clear()
    await Promise.all(endings.map((ending) => this.end(ending)))
  }

  #later(ending: Ending, delay: number): void {
    if (this.#isClosed) return
    this.#waiting.set(ending, this.runtime.later(delay, () => void this.#repeat(ending)))
  }

  async #repeat(ending: Ending): Promise<void> {
    this.#waiting.delete(ending)
    this.core.counters.releasesRetried += 1
    const outcome = await this.#outcome(ending)
    const delay = outcome && ending.after(outcome, this.runtime.now())
    if (delay !== undefined) this.#later(ending, delay)
  }

  /** What came of it. Nothing if the limiter is closed. */
  async #outcome({ call }: Ending): Promise<Outcome | undefined> {
    const outcome = this.send(call).then(
      (reply) => ({ reply }),
      (error: unknown) => (error instanceof Unavailable || error instanceof CallError ? error : undefined),
    )
    this.#running.add(outcome)
    try {
      return await outcome
    } finally {
      this.#running.delete(outcome)
    }
  }
}
