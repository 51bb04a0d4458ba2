/** Calls on a client of ioredis. */

import type { Call, Sender } from '../call/call.js'
import { ConfigurationError } from '../errors.js'
import { longest } from './waits.js'

/** What is used of `Redis` of ioredis. */
export interface Ioredis {
  readonly status: string
  readonly options: object
  call(command: string, ...args: (string | Buffer | number)[]): Promise<unknown>
  duplicate(override?: object): Ioredis
  connect(): Promise<void>
  disconnect(): void
  on(event: 'error' | 'ready' | 'close' | 'end', listener: (error: Error) => void): unknown
}

/** What is used of `Cluster` of ioredis. */
export interface IoredisCluster {
  readonly status: string
  readonly options: object
  /** The addresses of the nodes of each slot, the primary first. */
  readonly slots: string[][]
  nodes(role?: 'all' | 'master' | 'slave'): Ioredis[]
  call(command: string, ...args: (string | Buffer | number)[]): Promise<unknown>
  duplicate(overrideStartupNodes?: object[], overrideOptions?: object): IoredisCluster
  connect(): Promise<void>
  disconnect(): void
  on(event: 'error' | 'ready' | 'close', listener: (error: Error) => void): unknown
  on(event: '+node' | '-node', listener: (node: Ioredis) => void): unknown
}

/** An ioredis `Command`, as far as it is used. */
interface Command {
  getKeys(): readonly string[]
  isReadOnly?: boolean
  setTimeout: Timer
}

type Timer = (ms: number) => void

/** What takes a `Command`, which both kinds of clients do. */
interface Taker {
  call(command: string, ...args: (string | Buffer | number)[]): Promise<unknown>
  sendCommand(command: Command): Promise<unknown>
}

/** Whether this is a client of ioredis, of either kind. */
export function isIoredis(redis: unknown): redis is Ioredis | IoredisCluster {
  const client = redis as Partial<Ioredis> | null
  return typeof client?.call === 'function' && typeof client.duplicate === 'function' && typeof client.status === 'string'
}

/** The `keyPrefix` of a client. ioredis adds it to the keys of commands that it knows, and so not to ours. */
export function prefixOf(redis: Ioredis | IoredisCluster): string {
  const { keyPrefix } = redis.options as { keyPrefix?: unknown }
  return keyPrefix === undefined || keyPrefix === null ? '' : String(keyPrefix)
}

/** Sends calls on a `Redis`. */
export class IoredisSender implements Sender {
  constructor(readonly redis: Ioredis, readonly keyPrefix = prefixOf(redis)) {}

  send(call: Call): Promise<unknown> {
    const [name = '', ...args] = call.words
    return call.block === undefined ? this.redis.call(name, ...args) : sendCommand(this.redis, call)
  }
}

/** Sends calls on a `Cluster`, each to the node of its key. */
export class IoredisClusterSender implements Sender {
  readonly keyPrefix: string

  constructor(readonly cluster: IoredisCluster) {
    this.keyPrefix = prefixOf(cluster)
  }

  async send(call: Call): Promise<unknown> {
    if (!call.goesEverywhere) return sendCommand(this.cluster, call)
    const [name = '', ...args] = call.words
    // Until then not all nodes are known.
    if (this.cluster.status !== 'ready') await this.cluster.call('PING')
    return (await Promise.all(this.cluster.nodes('master').map((node) => node.call(name, ...args))))[0]
  }
}

/**
 * Sends a `Command` with its keys, and with a time-out above its wait.
 *
 * ioredis does not know the keys of a module's command, and would send it to any node. Auto-pipelining would even put it
 * into a pipeline for another node, which fails. Nor does it know that a command waits in the server, and its `commandTimeout`
 * would end the wait. So the command is made and sent by itself.
 *
 * `Command` is exported, but the application's copy cannot be imported from here. `call` makes one of that copy's class and
 * passes it to `sendCommand` of its `this`. So `call` gets a `this` that returns it.
 */
export async function sendCommand(redis: Ioredis | IoredisCluster, call: Call): Promise<unknown> {
  const taker = redis as unknown as Taker
  const catcher = { options: {}, sendCommand: (command: Command) => command }
  const command = Reflect.apply(taker.call, catcher, [...call.words]) as unknown as Partial<Command>
  if (typeof command?.getKeys !== 'function') throw new ConfigurationError('this version of ioredis is not supported')
  command.getKeys = () => call.keys
  // A call without a key is about its node, and a primary has more to say.
  command.isReadOnly = call.readonly && call.keys.length > 0
  if (call.block !== undefined) {
    const original = command.setTimeout as Timer
    command.setTimeout = (ms) => Reflect.apply(original, command, [Math.max(ms, longest(call))])
  }
  return taker.sendCommand(command as Command)
}
