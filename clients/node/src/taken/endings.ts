/**
 * Work that is repeated in the background until it succeeds: releases and settlements.
 *
 * @module
 */

import { backoff } from '../wire/backoff.js'
import { Unavailable } from '../errors.js'
import type { Channel } from '../wire/channel.js'

/** Work that may have to be repeated. */
export interface Repeated {
  /** What it is, for the log, such as `RL.RELEASE pool`. */
  what: string
  /** Does it once. Returns whether it is done. */
  attempt: () => Promise<boolean>
  /** After this time nothing is left to be done, in ms from now. */
  within: number
}

// The first delay in ms. Delays double, up to this part of the time that is left.
const FIRST = 50
const PART = 8

/** Repeats work, with growing delays. Its timers do not keep the process alive. */
export class Repeats {
  readonly #pending = new Map<NodeJS.Timeout, Repeated>()
  readonly #running = new Set<Promise<unknown>>()
  #isClosed = false

  constructor(private readonly channel: Channel) {}

  /** Does it once, and repeats it in the background if it is not done. Never throws. */
  async run(work: Repeated): Promise<void> {
    const until = performance.now() + work.within
    if (!(await this.#attempt(work))) this.#later(work, until, 0)
  }

  /** Waits for what is under way, tries what is pending once more, and ends. */
  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.allSettled(this.#running)
    const works = [...this.#pending.values()]
    for (const timer of this.#pending.keys()) clearTimeout(timer)
    this.#pending.clear()
    await Promise.all(works.map((work) => this.#attempt(work)))
  }

  async #attempt(work: Repeated): Promise<boolean> {
    const attempt = work.attempt()
    this.#running.add(attempt)
    try {
      return await attempt
    } catch (error) {
      this.channel.log.warn(`repeat ${work.what.split(' ', 1)[0]}`, `not done: ${work.what}: ${(error as Error).message}`)
      // It would fail again: it is wrong, or the limiter is closed.
      return !(error instanceof Unavailable)
    } finally {
      this.#running.delete(attempt)
    }
  }

  #later(work: Repeated, until: number, attempt: number): void {
    const left = until - performance.now()
    if (left <= 0 || this.#isClosed) return
    const delay = Math.min(backoff(attempt, FIRST, Math.max(FIRST, work.within / PART)), left)
    const timer = setTimeout(() => {
      this.#pending.delete(timer)
      this.channel.counters.releasesRetried += 1
      void this.#attempt(work).then((isDone) => (isDone ? undefined : this.#later(work, until, attempt + 1)))
    }, delay)
    timer.unref()
    this.#pending.set(timer, work)
  }
}
