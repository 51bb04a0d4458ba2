/**
 * Connections of the package's own, made from a client of node-redis.
 *
 * @module
 */

import type { Call } from '../call.js'
import { backoff, reconnection } from './backoff.js'
import type { Line, OwnClient, OwnSettings } from './client.js'
import { NodeRedisClusterSender, NodeRedisSender, parts } from './node-redis.js'
import type { NodeRedis, NodeRedisCluster, Options } from './node-redis.js'
import { slot } from './slot.js'

/** What a connection has that was made here. */
interface Made extends NodeRedis {
  connect(): Promise<unknown>
  destroy(): void
  on(event: 'error' | 'ready', listener: (error: Error) => void): unknown
  once(event: 'error' | 'ready', listener: (error: Error) => void): unknown
}

interface MadeCluster extends NodeRedisCluster {
  connect(): Promise<unknown>
  destroy(): void
  on(event: 'error' | 'node-error' | 'connect', listener: (error: Error) => void): unknown
}

type Reconnect = false | ((attempt: number) => number)

// No queue for better times: an answer now, or none. A socket of its own, with a time-out for connecting.
function settled(options: Options | undefined, { connectTimeout }: OwnSettings, reconnectStrategy: Reconnect): object {
  const socket = { ...options?.socket, connectTimeout, reconnectStrategy }
  return { disableOfflineQueue: true, clientSideCache: undefined, emitInvalidate: undefined, socket }
}

// node-redis' own time-out ends when a command is written, and takes longer than all else. The package has a timer of its own.
// Replies come in plain types, whatever the application has chosen for its own calls.
const PER_CALL = { timeout: undefined, typeMapping: {} }

class OwnNodeRedis extends NodeRedisSender implements OwnClient {
  readonly sendsLater = false
  readonly ready: Promise<void>
  readonly primaries = 1
  lastError: unknown
  readonly #own: Made

  constructor(
    original: NodeRedis,
    private readonly settings: OwnSettings,
  ) {
    const own = original.duplicate({
      ...settled(original.options as Options | undefined, settings, reconnection),
      commandOptions: PER_CALL,
    }) as Made
    super(own, PER_CALL)
    this.#own = own
    own.on('error', (error) => (this.lastError = error))
    own.on('ready', () => (this.lastError = undefined))
    this.ready = new Promise((resolve, reject) => {
      own.once('ready', () => resolve())
      own.once('error', reject)
      own.connect().catch(reject)
    })
    this.ready.catch(() => undefined)
  }

  line(): Promise<Line> {
    return open(this.#own, this.settings)
  }

  owner(): undefined {
    return undefined
  }

  close(): void {
    destroy(this.#own)
  }
}

class OwnNodeRedisCluster extends NodeRedisClusterSender implements OwnClient {
  readonly sendsLater = true
  readonly ready: Promise<void>
  lastError: unknown
  readonly #own: MadeCluster
  #isClosed = false

  constructor(
    original: NodeRedisCluster,
    private readonly settings: OwnSettings,
  ) {
    const { defaults } = parts(original)._options ?? {}
    const own = original.duplicate({
      defaults: { ...defaults, ...settled(defaults, settings, reconnection) },
      clientSideCache: undefined,
      commandOptions: PER_CALL,
      useReplicas: settings.readFromReplicas,
      minimizeConnections: false,
    }) as MadeCluster
    super(own, PER_CALL)
    this.#own = own
    own.on('error', (error) => (this.lastError = error))
    own.on('node-error', (error) => (this.lastError = error))
    this.ready = this.#connect()
    this.ready.catch(() => this.#again(0))
  }

  get primaries(): number {
    return this.#own.masters.length
  }

  async line(call: Call): Promise<Line> {
    const { slots, masters, nodeClient } = parts(this.#own)
    const node = slots[slot(call.keys[0] ?? '')]?.master ?? masters[0]
    if (node === undefined) throw new Error('no node of the cluster is known')
    return open(await Reflect.apply(nodeClient, this.#own, [node]), this.settings)
  }

  owner(key: string): string | undefined {
    return parts(this.#own).slots[slot(key)]?.master.address
  }

  close(): void {
    this.#isClosed = true
    destroy(this.#own)
  }

  async #connect(): Promise<void> {
    await this.#own.connect()
    this.lastError = undefined
  }

  // Unlike a plain client, that of a cluster gives up if no node answers.
  #again(attempt: number): void {
    if (this.#isClosed) return
    const next = () => (this.#isClosed ? undefined : this.#connect().catch(() => this.#again(attempt + 1)))
    setTimeout(next, backoff(attempt)).unref()
  }
}

export function ownNodeRedis(redis: NodeRedis, settings: OwnSettings): OwnClient {
  return new OwnNodeRedis(redis, settings)
}

export function ownNodeRedisCluster(cluster: NodeRedisCluster, settings: OwnSettings): OwnClient {
  return new OwnNodeRedisCluster(cluster, settings)
}

async function open(redis: NodeRedis, settings: OwnSettings): Promise<Line> {
  const own = redis.duplicate({
    ...settled(redis.options as Options | undefined, settings, false),
    commandOptions: PER_CALL,
  }) as Made
  own.on('error', () => undefined)
  try {
    await own.connect()
  } catch (error) {
    destroy(own)
    throw error
  }
  const sender = new NodeRedisSender(own, PER_CALL)
  return { send: (call) => sender.send(call), close: () => destroy(own) }
}

// Version 5 throws if it is not open.
function destroy(redis: { destroy(): void }): void {
  try {
    redis.destroy()
  } catch {
    // it is closed
  }
}
