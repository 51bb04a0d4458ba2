/**
 * What the parts of a limiter share: the way to the server, and work in the background.
 *
 * @module
 */

import { Call } from './call.js'
import { Channel } from './channel.js'
import { Commands } from './commands.js'
import type { RedisClient } from './clients/client.js'
import type { Settings } from './options.js'
import { Repeats } from './repeats.js'

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

/** The way to the server, and work in the background. */
export class Core {
  readonly channel: Channel
  readonly commands: Commands
  readonly repeats: Repeats

  constructor(
    redis: RedisClient,
    readonly settings: Settings,
  ) {
    this.channel = new Channel(redis, settings)
    this.commands = new Commands(this.channel, settings.prefix)
    this.repeats = new Repeats(this.channel)
  }

  /** Begins a call with the limiter's prefix. */
  call(command: string, readonly = false): Call {
    return new Call(this.channel.keyPrefix + this.settings.prefix, [command], readonly)
  }

  /** Ends a lease on its keys. Repeated in the background until it is certain that it has ended. Never throws. */
  release(keys: readonly string[], id: string, { within, certain }: RepeatOptions): Promise<void> {
    const [key = ''] = keys
    const attempt = async () => {
      const count =
        keys.length === 1 ? Number(await this.commands.release(key, id)) : await this.commands.multiRelease(keys, id)
      return certain || count > 0
    }
    return this.repeats.run({ what: `RL.RELEASE of '${keys.join("', '")}'`, attempt, within })
  }
}
