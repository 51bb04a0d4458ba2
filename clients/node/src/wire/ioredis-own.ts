/** Connections of the package's own, made from a client of ioredis. */

import type { Call } from '../call/call.js'
import { reconnection } from './backoff.js'
import { CLUSTER, Coming, type Line, type OwnClient, type OwnSettings } from './own.js'
import { IoredisClusterSender, IoredisSender, prefixOf, type Ioredis, type IoredisCluster } from './ioredis.js'
import { hostAndPort, slot } from './slots.js'

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
export class OwnIoredis extends IoredisSender implements OwnClient {
  readonly isCluster = false
  readonly name: string
  readonly sendsLater = false
  readonly ready: Promise<void>
  readonly primaries = 1
  readonly owners = []
  readonly moves: boolean
  readonly #coming = new Coming()

  constructor(original: Ioredis, private readonly settings: OwnSettings) {
    // ioredis would add it once more to the keys of commands that it knows.
    super(original.duplicate({ ...settled(settings), keyPrefix: '' }), prefixOf(original))
    this.name = addressOf(original)
    this.moves = groupOf(original) !== undefined
    this.redis.on('close', () => this.#coming.down(this.lastError))
    this.redis.on('ready', () => this.#coming.up())
    this.ready = connected(this.redis, (error) => (this.#coming.lastError = error))
  }

  get lastError(): unknown {
    return this.#coming.lastError
  }

  again(): Promise<void> | undefined {
    return this.#coming.again
  }

  // When a connection ends, calls are rejected a moment before the client says why.
  override send(call: Call): Promise<unknown> {
    const reply = super.send(call)
    reply.catch((error: unknown) => ENDING.test(String(error)) && this.#coming.ending())
    return reply
  }

  drop(_: string | undefined, error: Error): boolean {
    if (!cut(this.redis)) return false
    this.#coming.lastError = error
    this.#coming.ending()
    return true
  }

  line(_: Call, signal: AbortSignal, address?: string): Promise<Line> {
    return open(this.redis, this.settings, signal, address)
  }

  owner(): undefined {
    return undefined
  }

  close(): void {
    this.redis.disconnect()
  }
}

/** Connections for a client of this kind. */
export class OwnIoredisCluster extends IoredisClusterSender implements OwnClient {
  readonly isCluster = true
  readonly name = CLUSTER
  readonly sendsLater = false
  readonly ready: Promise<void>
  readonly #coming = new Coming()
  // From version 6 on a call to a node that is connecting fails at once.
  readonly #nodes = new Map<string, { redis: Ioredis; ready: Promise<void> }>()

  constructor(original: IoredisCluster, private readonly settings: OwnSettings) {
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
    super(original.duplicate(seeds(original), overrides))
    this.cluster.on('+node', (redis) => this.#nodes.set(addressOf(redis), { redis, ready: readyOf(redis) }))
    this.cluster.on('-node', (redis) => this.#nodes.get(addressOf(redis))?.redis === redis && this.#nodes.delete(addressOf(redis)))
    // It closes when its last node is lost.
    this.cluster.on('close', () => this.#coming.down(this.lastError))
    this.cluster.on('ready', () => this.#coming.up())
    // Nodes connect with their first call, so each gets one.
    this.ready = connected(this.cluster, (error) => (this.#coming.lastError = error)).then(async () => {
      await Promise.all(this.cluster.nodes('master').map((node) => node.call('PING').catch(() => undefined)))
    })
    this.ready.catch(() => undefined)
  }

  get lastError(): unknown {
    return this.#coming.lastError
  }

  get primaries(): number {
    return this.cluster.nodes('master').length
  }

  get moves(): boolean {
    return this.primaries > 1
  }

  get owners(): string[] {
    // Before, these are the nodes that it begins with.
    return this.cluster.status === 'ready' ? this.cluster.nodes('master').map(addressOf) : []
  }

  async line(call: Call, signal: AbortSignal, address = this.owner(call.keys[0] ?? '')): Promise<Line> {
    const nodes = this.cluster.nodes('master')
    const node = nodes.find((one) => addressOf(one) === address) ?? nodes[0]
    if (node === undefined) throw new Error('no node of the cluster is known')
    return open(node, this.settings, signal, address)
  }

  again(key: string | undefined): Promise<void> | undefined {
    if (this.cluster.status !== 'ready') {
      // It may not have said yet that it is closed.
      this.#coming.ending()
      return this.#coming.again
    }
    const node = key === undefined ? undefined : this.#nodes.get(this.owner(key) ?? '')
    if (node === undefined || !CONNECTS.test(node.redis.status)) return undefined
    if (node.redis.status === 'wait') node.redis.connect().catch(() => undefined)
    return node.ready
  }

  drop(key: string | undefined): boolean {
    const node = key === undefined ? undefined : this.#nodes.get(this.owner(key) ?? '')
    return node !== undefined && cut(node.redis)
  }

  owner(key: string): string | undefined {
    return this.cluster.slots[slot(key)]?.[0]
  }

  close(): void {
    this.cluster.disconnect()
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

/** Connects. The errors of all attempts are told to `note`, and `undefined` when it is connected. */
function connected(redis: Ioredis | IoredisCluster, note: (error: unknown) => void): Promise<void> {
  redis.on('error', note)
  redis.on('ready', () => note(undefined))
  const ready = redis.connect()
  ready.catch(() => undefined)
  return ready
}

/** Settles when a node of a cluster is connected, or cannot be. Then its client makes another one. */
function readyOf(redis: Ioredis): Promise<void> {
  let lastError: unknown
  redis.on('error', (error) => (lastError = error))
  const ready = new Promise<void>((resolve, reject) => {
    redis.on('ready', () => resolve())
    redis.on('end', () => reject(lastError ?? new Error('the connection was closed')))
  })
  ready.catch(() => undefined)
  return ready
}

/** Ends a connection at once, as if it was lost: `disconnect` would wait for a server that is silent. */
function cut(redis: Ioredis): boolean {
  const { stream, status } = redis as { stream?: { destroy?(): unknown }; status: string }
  if (status !== 'ready' || typeof stream?.destroy !== 'function') return false
  stream.destroy()
  return true
}

async function open(redis: Ioredis, settings: OwnSettings, signal: AbortSignal, address?: string): Promise<Line> {
  const at = address === undefined ? {} : hostAndPort(address)
  const own = redis.duplicate({ ...settled(settings), ...at, retryStrategy: () => null })
  own.on('error', () => undefined)
  const end = () => own.disconnect()
  signal.addEventListener('abort', end, { once: true })
  try {
    await own.connect()
  } catch (error) {
    end()
    throw error
  }
  const sender = new IoredisSender(own)
  return { send: (call) => sender.send(call), close: end }
}
