/** Connections of the package's own, made from a client of node-redis. */

import { setMaxListeners } from 'node:events'
import type { Call } from '../call/call.js'
import { backoff, reconnection } from './backoff.js'
import { CLUSTER, Coming, opened, Own, quiet, type Line, type OwnSettings } from './own.js'
import { NodeRedisClusterSender, NodeRedisSender, parts } from './node-redis.js'
import type { NodeRedis, NodeRedisCluster, Options } from './node-redis.js'
import { hostAndPort, slotOf } from './slots.js'

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

/** How connections are made again, and what ends them. */
interface Life {
  again: (attempt: number) => number | false
  /** Ends all sockets. node-redis forgets those that are connecting, and those of its search for the nodes of a cluster. */
  end: AbortController
}

function life(again: Life['again']): Life {
  const end = new AbortController()
  setMaxListeners(0, end.signal)
  return { again: (attempt) => (end.signal.aborted ? false : again(attempt)), end }
}

// No queue for better times: an answer now, or none. A socket of its own, with a time-out for connecting.
function settled(options: Options | undefined, { connectTimeout }: OwnSettings, { again, end }: Life, at?: object): object {
  const socket = { ...options?.socket, connectTimeout, socketTimeout: undefined, reconnectStrategy: again, signal: end.signal, ...at }
  return { disableOfflineQueue: true, clientSideCache: undefined, emitInvalidate: undefined, socket }
}

// node-redis' own time-out ends when a command is written, and takes longer than all else. The package has a timer of its own.
// Replies come in plain types, whatever the application has chosen for its own calls.
const PER_CALL = { timeout: undefined, typeMapping: {} }

/** Connections for a client of this kind. */
export class OwnNodeRedis extends Own {
  readonly ready: Promise<void>
  readonly #redis: Made
  readonly #life: Life

  constructor(original: NodeRedis, settings: OwnSettings) {
    const lives = life((attempt) => reconnection(settings.runtime, attempt))
    const redis = made(original, settings, lives)
    super(addressOf(original), new NodeRedisSender(redis, PER_CALL), settings)
    this.#redis = redis
    this.#life = lives
    follow(redis, this.coming)
    this.ready = quiet(
      new Promise((resolve, reject) => {
        redis.once('ready', () => resolve())
        redis.once('error', reject)
        redis.connect().catch(reject)
      }),
    )
  }

  drop(_: string | undefined, error: Error): boolean {
    return anew(this.#redis, this.coming, error)
  }

  line(_: Call, signal: AbortSignal, address?: string): Promise<Line> {
    return open(this.#redis, this.settings, signal, address)
  }

  close(): void {
    destroy(this.#redis)
    this.#life.end.abort()
  }
}

/** Connections for a client of this kind. */
export class OwnNodeRedisCluster extends Own {
  override readonly isCluster = true
  override readonly sendsLater = true
  readonly ready: Promise<void>
  readonly #own: MadeCluster
  readonly #nodes = new WeakMap<NodeRedis, Coming>()
  readonly #life: Life

  constructor(original: NodeRedisCluster, settings: OwnSettings) {
    const { defaults } = parts(original)._options ?? {}
    const lives = life((attempt) => reconnection(settings.runtime, attempt))
    const own = original.duplicate({
      rootNodes: seeds(original, settings),
      defaults: { ...defaults, ...settled(defaults, settings, lives) },
      clientSideCache: undefined,
      commandOptions: PER_CALL,
      useReplicas: settings.readFromReplicas,
      // Else it would be offline as long as one node is silent. So the nodes are connected below.
      minimizeConnections: true,
    }) as MadeCluster
    super(CLUSTER, new NodeRedisClusterSender(own, PER_CALL), settings)
    this.#own = own
    this.#life = lives
    for (const event of ['error', 'node-error'] as const) own.on(event, (error) => (this.coming.lastError = error))
    this.ready = this.#connect()
    this.ready.catch(() => this.#again(0))
  }

  override get primaries(): number {
    return this.#own.masters.length
  }

  override get owners(): string[] {
    return parts(this.#own).masters.map((node) => node.address)
  }

  async line(call: Call, signal: AbortSignal, address?: string): Promise<Line> {
    const { slots, masters, nodeClient } = parts(this.#own)
    const named = masters.find((one) => one.address === address)
    const node = named ?? slots[slotOf(call.keys[0] ?? '')]?.master ?? masters[0]
    if (node === undefined) throw new Error('no node of the cluster is known')
    // A client that is connecting is not waited for.
    const client = node.client ?? (await Reflect.apply(nodeClient, this.#own, [node]))
    return open(client, this.settings, signal, named === undefined ? address : undefined)
  }

  override again(key: string | undefined): Promise<void> | undefined {
    return this.#node(key)?.known.again
  }

  drop(key: string | undefined, error: Error): boolean {
    const node = this.#node(key)
    return node !== undefined && anew(node.client, node.known, error)
  }

  #node(key: string | undefined): { client: Made; known: Coming } | undefined {
    const client = key === undefined ? undefined : parts(this.#own).slots[slotOf(key)]?.master.client
    if (client === undefined) return undefined
    const known = this.#nodes.get(client) ?? follow(client as Made, new Coming(client.isReady))
    this.#nodes.set(client, known)
    return { client: client as Made, known }
  }

  override owner(key: string): string | undefined {
    return parts(this.#own).slots[slotOf(key)]?.master.address
  }

  close(): void {
    const { masters, replicas = [] } = parts(this.#own)
    for (const { client } of [...masters, ...replicas]) if (client !== undefined) destroy(client as Made)
    destroy(this.#own)
    this.#life.end.abort()
  }

  async #connect(): Promise<void> {
    await this.#own.connect()
    const { masters, replicas = [], nodeClient } = parts(this.#own)
    await Promise.all([...masters, ...replicas].map((node) => Reflect.apply(nodeClient, this.#own, [node])))
    this.coming.lastError = undefined
  }

  // Unlike a plain client, that of a cluster gives up if no node answers.
  #again(attempt: number): void {
    const { signal } = this.#life.end
    if (signal.aborted) return
    const next = () => (signal.aborted ? undefined : this.#connect().catch(() => this.#again(attempt + 1)))
    this.settings.runtime.later(backoff(this.settings.runtime, attempt), next)
  }
}

/**
 * The nodes that are asked for the others: those of the application, and those that its client has found, for the first ones
 * may be gone. One that is silent is given up within the time for connecting.
 */
function seeds(cluster: NodeRedisCluster, { connectTimeout }: OwnSettings): object[] {
  const { _options, masters } = parts(cluster)
  const { rootNodes = [], nodeAddressMap } = _options ?? {}
  // Found ones may have other addresses from here.
  const found = nodeAddressMap === undefined ? masters.map(({ address }) => ({ socket: hostAndPort(address) })) : []
  return [...rootNodes, ...found].map((node) => ({
    ...node,
    // Version 5 takes a time-out of this for an answer, and then waits for ever.
    disableClientInfo: true,
    socket: { ...node.socket, socketTimeout: Math.ceil(connectTimeout / 2) },
  }))
}

function made(original: NodeRedis, settings: OwnSettings, lives: Life, at?: object): Made {
  return original.duplicate({ ...settled(original.options as Options | undefined, settings, lives, at), commandOptions: PER_CALL }) as Made
}

function open(redis: NodeRedis, settings: OwnSettings, signal: AbortSignal, address?: string): Promise<Line> {
  const lives = life(() => false)
  const own = made(redis, settings, lives, address === undefined ? {} : hostAndPort(address))
  // Version 5 forgets a call if the connection ends before it is written.
  const lost = quiet(new Promise<never>((_, reject) => own.on('error', reject)))
  const sender = new NodeRedisSender(own, PER_CALL)
  const close = () => {
    destroy(own)
    lives.end.abort()
  }
  return opened({ connect: () => own.connect(), send: (call) => Promise.race([sender.send(call), lost]), close }, signal)
}

function addressOf({ options }: NodeRedis): string {
  const socket = ((options as Options | undefined)?.socket ?? {}) as { host?: string; port?: number; path?: string }
  const { host = 'localhost', port = 6379, path } = socket
  return path ?? `${host}:${port}`
}

function follow(redis: Made, known: Coming): Coming {
  redis.on('error', (error) => known.down(error))
  redis.on('ready', () => known.up())
  return known
}

/** Closes a connection, and connects its client anew. Returns false if it is not open. */
function anew(redis: Made, known: Coming, error: Error): boolean {
  if (redis.isReady !== true) return false
  destroy(redis)
  known.down(error)
  redis.connect().catch(() => undefined)
  return true
}

// It throws if it is not open.
function destroy(redis: { destroy(): void }): void {
  try {
    redis.destroy()
  } catch {
    // it is closed
  }
}
