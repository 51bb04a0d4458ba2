/** Sends a command with one key through whatever client the application has, to the node of the key. */

import { Call } from '../call/call.js'
import { senderOf, type RedisClient } from '../wire/clients.js'
import { isIoredis, sendCommand } from '../wire/ioredis.js'

/** Sends `command`, the words before the key, the key with the client's prefix, and the words after it. */
export type RawSender = (key: string, command: string, before: string[], after: string[]) => Promise<unknown[]>

export function rawSender(client: unknown): RawSender {
  return async (key, command, before, after) => {
    const sender = senderOf(client as RedisClient)
    const full = sender.keyPrefix + key
    const call = new Call('', [command, ...before, full, ...after])
    call.keys.push(full)
    // ioredis adds its prefix to the keys of commands that it knows, unless the command is sent as it is.
    return (await (isIoredis(client) ? sendCommand(client, call) : sender.send(call))) as unknown[]
  }
}
