/**
 * What the parts of a limiter share: the way to the server, refusals in memory, leases, and work in the background.
 *
 * @module
 */

import { setImmediate } from 'node:timers/promises'
import { Call, type Sender } from './call/call.js'
import { Channel, type SendOptions } from './wire/channel.js'
import { Commands } from './commands.js'
import type { RedisClient } from './wire/client.js'
import type { Decision } from './decide/decision.js'
import { Closed, Unavailable } from './errors.js'
import { shownKey } from './decide/log.js'
import type { Settings } from './call/settings.js'
import { Refusals } from './decide/refusals.js'
import { Repeats } from './taken/endings.js'
import { AllTaken } from './taken/taken.js'

/** How long work may be repeated, and what counts as success. */
export interface RepeatOptions {
  /** After this time nothing is left to be done, in ms. */
  within: number
  /**
   * Whether the call that is undone had an answer. If not, it may still be executed, so it is repeated until the server
   * says that there was something to undo.
   */
  certain: boolean
}

// What gives something back: a call that was refused before may be admitted now.
const GIVES_BACK = new Set([
  'RL.REFUND',
  'RL.MULTIREFUND',
  'RL.ASKREFUND',
  'RL.SETTLE',
  'RL.MULTISETTLE',
  'RL.ASKSETTLE',
  'RL.RELEASE',
  'RL.MULTIRELEASE',
])

/** The way to the server, and work in the background. */
export class Core implements Sender {
  readonly channel: Channel
  readonly commands: Commands
  readonly repeats: Repeats
  readonly refusals: Refusals<Decision> | undefined
  readonly taken = new AllTaken()
  #isClosed = false
  #closed: Promise<void> | undefined
  #underWay = 0
  #idle: () => void = () => {}

  constructor(
    redis: RedisClient,
    readonly settings: Settings,
  ) {
    const { cache, prefix } = settings
    this.channel = new Channel(redis, settings)
    this.commands = new Commands(this, prefix)
    this.repeats = new Repeats(this.channel)
    this.refusals = cache === null ? undefined : new Refusals(cache.keys, cache.longest)
  }

  get keyPrefix(): string {
    return this.channel.keyPrefix
  }

  /** Whether `close` has begun. Who is granted something from then on gives it back. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Throws if `close` has begun. */
  throwIfClosed(): void {
    if (this.#isClosed) throw new Closed()
  }

  /** Begins a call with the limiter's prefix. */
  call(command: string, readonly = false): Call {
    return new Call(this.keyPrefix + this.settings.prefix, [command], readonly)
  }

  /** Sends a call. All calls of a limiter go this way, so that refusals are forgotten whoever gives something back. */
  async send(call: Call, options?: SendOptions): Promise<unknown> {
    const givesBack = GIVES_BACK.has(call.command)
    if (!givesBack) this.throwIfClosed()
    this.#underWay += 1
    try {
      return await this.channel.send(call, options)
    } finally {
      // Without an answer too: it may have been executed.
      if (givesBack) this.refusals?.forget(call.keys)
      this.#underWay -= 1
      if (this.#underWay === 0) this.#idle()
    }
  }

  /**
   * Whether a request goes on without an answer. Counts it, and writes a line.
   *
   * @param about - what the question is about, as the line names it behind the error
   * @param isCounted - false for a look, which is not counted
   */
  goesOn(about: string, error: Error, isCounted = true): boolean {
    const { isOpen } = this.settings
    const { counters, log } = this.channel
    if (isCounted) {
      counters.asked += 1
      counters[isOpen ? 'failedOpen' : 'failedClosed'] += 1
    }
    const kind = error instanceof Unavailable ? error.kind : error.name
    log.warn(`unanswered ${kind}`, `${error.message}${about}; ${isOpen ? 'let through' : 'not let through'}`)
    return isOpen
  }

  /** Ends a lease on its keys. Repeated in the background until it is certain that it has ended. Never throws. */
  release(keys: readonly string[], id: string, { within, certain }: RepeatOptions): Promise<void> {
    const [key = ''] = keys
    const attempt = async () => {
      const count =
        keys.length === 1 ? Number(await this.commands.release(key, id)) : await this.commands.multiRelease(keys, id)
      return certain || count > 0
    }
    return this.repeats.run({ what: `RL.RELEASE${shownKey(key)}`, attempt, within })
  }

  /**
   * Refuses new calls, except those that give something back. Releases and settles what is taken or still granted, waits for
   * calls under way, tries once more what had no answer, and ends all connections.
   */
  close(): Promise<void> {
    this.#isClosed = true
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    this.channel.endWaits()
    await this.taken.end()
    if (this.#underWay > 0) await new Promise<void>((resolve) => (this.#idle = resolve))
    // The callers have their replies one turn later, and give back what they were granted.
    await setImmediate()
    await this.repeats.close()
    await this.channel.close()
  }
}
