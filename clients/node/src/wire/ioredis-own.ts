/** Connections of the package's own, made from a client of ioredis. */

import type { Call } from '../call/call.js'
import { reconnection } from './backoff.js'
import { CLUSTER, opened, Own, quiet, type Coming, type Line, type OwnSettings } from './own.js'
import { IoredisClusterSender, IoredisSender, prefixOf, type Ioredis, type IoredisCluster } from './ioredis.js'
import { hostAndPort, slotOf } from './slots.js'

// No queue for better times, and nothing is sent twice: a lost reply is no lost call. The package has a timer of its own.
function settled({ connectTimeout, runtime }: OwnSettings): object {
  return {
    connectTimeout,
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    commandTimeout: undefined,
    socketTimeout: undefined,
    reconnectOnError: null,
    retryStrategy: (attempt: number) => reconnection(runtime, attempt - 1),
    showFriendlyErrorStack: false,
  }
}

const ENDING = /Stream isn't writeable/
// What a node is until it is ready.
const CONNECTS = /^(wait|connecting|connect)$/

/** Connections for a client of this kind. */
export class OwnIoredis extends Own {
  readonly ready: Promise<void>
  readonly #redis: Ioredis

  constructor(original: Ioredis, settings: OwnSettings) {
    // ioredis would add the prefix once more to the keys of commands that it knows.
    const redis = original.duplicate({ ...settled(settings), keyPrefix: '' })
    super(addressOf(original), new IoredisSender(redis, prefixOf(original)), settings)
    this.#redis = redis
    this.ready = connected(redis, this.coming)
  }

  override get moves(): boolean {
    return groupOf(this.#redis) !== undefined
  }

  // When a connection ends, calls are rejected a moment before the client says why.
  override send(call: Call): Promise<unknown> {
    const reply = super.send(call)
    reply.catch((error: unknown) => ENDING.test(String(error)) && this.coming.ending())
    return reply
  }

  drop(_: string | undefined, error: Error): boolean {
    if (!cut(this.#redis)) return false
    this.coming.lastError = error
    this.coming.ending()
    return true
  }

  line(_: Call, signal: AbortSignal, address?: string): Promise<Line> {
    return open(this.#redis, this.settings, signal, address)
  }

  close(): void {
    this.#redis.disconnect()
  }
}

/** Connections for a client of this kind. */
export class OwnIoredisCluster extends Own {
  override readonly isCluster = true
  readonly ready: Promise<void>
  readonly #cluster: IoredisCluster
  // From version 6 on a call to a node that is connecting fails at once.
  readonly #nodes = new Map<string, { redis: Ioredis; ready: Promise<void> }>()

  constructor(original: IoredisCluster, settings: OwnSettings) {
    // Retries after a lost connection would send a call twice.
    const overrides = {
      // ioredis compares the bounds of slots as it gets them. As texts, 5461 would be more than 10922.
      redisOptions: { ...settled(settings), stringNumbers: false },
      lazyConnect: true,
      enableOfflineQueue: false,
      // It would ask any node, and wait for ever if that is silent.
      enableReadyCheck: false,
      maxRedirections: 4,
      retryDelayOnFailover: 0,
      retryDelayOnClusterDown: 0,
      // If a node is silent, another one is asked within the time.
      slotsRefreshTimeout: settings.connectTimeout / 2,
      retryDelayOnTryAgain: 10,
      clusterRetryStrategy: (attempt: number) => reconnection(settings.runtime, attempt - 1),
      // Of version 6. A lost node gives way to a new one, and `again` waits for that.
      clusterNodeRetryStrategy: null,
      scaleReads: settings.readFromReplicas ? 'slave' : 'master',
    }
    const cluster = original.duplicate(seeds(original), overrides)
    super(CLUSTER, new IoredisClusterSender(cluster), settings)
    this.#cluster = cluster
    cluster.on('+node', (redis) => this.#nodes.set(addressOf(redis), { redis, ready: readyOf(redis) }))
    cluster.on('-node', (redis) => this.#nodes.get(addressOf(redis))?.redis === redis && this.#nodes.delete(addressOf(redis)))
    // It closes when its last node is lost. Nodes connect with their first call, so each gets one.
    const pings = () => Promise.all(cluster.nodes('master').map((node) => node.call('PING').catch(() => undefined)))
    this.ready = quiet(connected(cluster, this.coming).then(async () => void (await pings())))
  }

  override get primaries(): number {
    return this.#cluster.nodes('master').length
  }

  override get owners(): string[] {
    // Before, these are the nodes that it begins with.
    return this.#cluster.status === 'ready' ? this.#cluster.nodes('master').map(addressOf) : []
  }

  async line(call: Call, signal: AbortSignal, address = this.owner(call.keys[0] ?? '')): Promise<Line> {
    const nodes = this.#cluster.nodes('master')
    const node = nodes.find((one) => addressOf(one) === address) ?? nodes[0]
    if (node === undefined) throw new Error('no node of the cluster is known')
    return open(node, this.settings, signal, address)
  }

  override again(key: string | undefined): Promise<void> | undefined {
    if (this.#cluster.status !== 'ready') {
      // It may not have said yet that it is closed.
      this.coming.ending()
      return this.coming.again
    }
    const node = this.#node(key)
    if (node === undefined || !CONNECTS.test(node.redis.status)) return undefined
    if (node.redis.status === 'wait') node.redis.connect().catch(() => undefined)
    return node.ready
  }

  drop(key: string | undefined): boolean {
    const node = this.#node(key)
    return node !== undefined && cut(node.redis)
  }

  #node(key: string | undefined): { redis: Ioredis; ready: Promise<void> } | undefined {
    return key === undefined ? undefined : this.#nodes.get(this.owner(key) ?? '')
  }

  override owner(key: string): string | undefined {
    return this.#cluster.slots[slotOf(key)]?.[0]
  }

  close(): void {
    this.#cluster.disconnect()
  }
}

// Also the nodes that the application's client has found, for its first ones may be gone or silent.
function seeds(cluster: IoredisCluster): object[] {
  const known = cluster.nodes('master').map((node) => hostAndPort(addressOf(node)))
  const { startupNodes = [] } = cluster as { startupNodes?: readonly object[] }
  return startupNodes.length === 0 ? [] : [...startupNodes, ...known]
}

function addressOf(node: Ioredis): string {
  const group = groupOf(node)
  if (group !== undefined) return `the primary of ${group}`
  const { host, port, path } = node.options as { host?: string; port?: number; path?: string }
  return path ?? `${host}:${port}`
}

/** What sentinels call the servers of this client, if it has sentinels. */
function groupOf({ options }: Ioredis): string | undefined {
  const { sentinels, name } = options as { sentinels?: unknown; name?: string }
  return Array.isArray(sentinels) ? name : undefined
}

/** Connects, and notes whether the connection is there. */
function connected(redis: Ioredis | IoredisCluster, coming: Coming): Promise<void> {
  redis.on('error', (error) => (coming.lastError = error))
  redis.on('close', () => coming.down(coming.lastError))
  redis.on('ready', () => coming.up())
  return quiet(redis.connect())
}

/** Settles when a node of a cluster is connected, or cannot be. Then its client makes another one. */
function readyOf(redis: Ioredis): Promise<void> {
  let lastError: unknown
  redis.on('error', (error) => (lastError = error))
  const ended = () => lastError ?? new Error('the connection was closed')
  return quiet(new Promise((resolve, reject) => redis.on('ready', () => resolve()) && redis.on('end', () => reject(ended()))))
}

/** Ends a connection at once, as if it was lost: `disconnect` would wait for a server that is silent. */
function cut(redis: Ioredis): boolean {
  const { stream, status } = redis as { stream?: { destroy?(): unknown }; status: string }
  if (status !== 'ready' || typeof stream?.destroy !== 'function') return false
  stream.destroy()
  return true
}

function open(redis: Ioredis, settings: OwnSettings, signal: AbortSignal, address?: string): Promise<Line> {
  const at = address === undefined ? {} : hostAndPort(address)
  const own = redis.duplicate({ ...settled(settings), ...at, retryStrategy: () => null })
  own.on('error', () => undefined)
  const sender = new IoredisSender(own)
  return opened({ connect: () => own.connect(), send: (call) => sender.send(call), close: () => own.disconnect() }, signal)
}
