/** Sends a command with one key through whatever client the application has, to the node of the key. */

/** Sends `command`, the words before the key, the key with the client's prefix, and the words after it. */
export type RawSender = (key: string, command: string, before: string[], after: string[]) => Promise<unknown[]>

type Word = string | Buffer

interface IoredisCommand {
  getKeys(): Word[]
}

interface Ioredis {
  options: { keyPrefix?: Word }
  call(...words: Word[]): Promise<unknown>
  sendCommand(command: IoredisCommand): Promise<unknown>
}

interface NodeRedis {
  _keyPrefix?: Word
  /** A plain client or a pool: (words). A sentinel: (isReadonly, words). A cluster: (key, isReadonly, words). */
  sendCommand(...call: unknown[]): Promise<unknown>
}

/** Whether this is a client of node-redis, and not of ioredis. */
export function isNodeRedis(client: unknown): client is NodeRedis {
  return has(client, 'sendCommand') && !has(client, 'defineCommand')
}

export function rawSender(client: unknown): RawSender {
  return isNodeRedis(client) ? nodeRedisSender(client) : ioredisSender(client as Ioredis)
}

function ioredisSender(client: Ioredis): RawSender {
  // Calls the client's own `call` on an object that keeps the command. So the command is of the client's version.
  const command = (...words: Word[]): IoredisCommand => {
    let made: IoredisCommand | undefined
    const keep = { options: {}, sendCommand: (command: IoredisCommand) => (made = command) }
    client.call.apply(keep, words)
    return made!
  }
  return async (key, name, before, after) => {
    const full = prefixed(client.options.keyPrefix, key)
    const made = command(name, ...before, full, ...after)
    // ioredis knows no keys of a module's commands. Without keys a cluster would send them to any node.
    made.getKeys = () => [full]
    return (await client.sendCommand(made)) as unknown[]
  }
}

function nodeRedisSender(client: NodeRedis): RawSender {
  const routed = has(client, 'nodeClient')
    ? (key: Word, words: Word[]) => client.sendCommand(key, false, words)
    : has(client, 'getMasterNode')
      ? (_key: Word, words: Word[]) => client.sendCommand(false, words)
      : (_key: Word, words: Word[]) => client.sendCommand(words)
  return async (key, name, before, after) => {
    const full = prefixed(client._keyPrefix, key)
    return (await routed(full, [name, ...before, full, ...after])) as unknown[]
  }
}

// A number may be a key, too.
function prefixed(prefix: Word | undefined, key: string | number): Word {
  if (prefix instanceof Buffer) return Buffer.concat([prefix, Buffer.from(String(key))])
  return (prefix ?? '') + String(key)
}

function has(client: unknown, method: string): boolean {
  return typeof (client as Record<string, unknown> | undefined)?.[method] === 'function'
}
