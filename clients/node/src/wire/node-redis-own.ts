/** Connections of the package's own, made from a client of node-redis. */

import { setMaxListeners } from 'node:events'
import type { Call } from '../call/call.js'
import { backoff, reconnection } from './backoff.js'
import { CLUSTER, Coming, type Line, type OwnClient, type OwnSettings } from './own.js'
import { NodeRedisClusterSender, NodeRedisSender, parts } from './node-redis.js'
import type { NodeRedis, NodeRedisCluster, Options } from './node-redis.js'
import { hostAndPort, slot } from './slots.js'

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
export class OwnNodeRedis extends NodeRedisSender implements OwnClient {
  readonly isCluster = false
  readonly name: string
  readonly sendsLater = false
  readonly ready: Promise<void>
  readonly primaries = 1
  readonly owners = []
  readonly moves = false
  readonly #coming: Coming
  readonly #own: Made
  readonly #life: Life

  constructor(original: NodeRedis, private readonly settings: OwnSettings) {
    const lives = life((attempt) => reconnection(settings.runtime, attempt))
    const own = original.duplicate({
      ...settled(original.options as Options | undefined, settings, lives),
      commandOptions: PER_CALL,
    }) as Made
    super(own, PER_CALL)
    this.name = addressOf(original)
    this.#own = own
    this.#life = lives
    this.#coming = coming(own)
    this.ready = new Promise((resolve, reject) => {
      own.once('ready', () => resolve())
      own.once('error', reject)
      own.connect().catch(reject)
    })
    this.ready.catch(() => undefined)
  }

  get lastError(): unknown {
    return this.#coming.lastError
  }

  again(): Promise<void> | undefined {
    return this.#coming.again
  }

  drop(_: string | undefined, error: Error): boolean {
    return anew(this.#own, this.#coming, error)
  }

  line(_: Call, signal: AbortSignal, address?: string): Promise<Line> {
    return open(this.#own, this.settings, signal, address)
  }

  owner(): undefined {
    return undefined
  }

  close(): void {
    destroy(this.#own)
    this.#life.end.abort()
  }
}

/** Connections for a client of this kind. */
export class OwnNodeRedisCluster extends NodeRedisClusterSender implements OwnClient {
  readonly isCluster = true
  readonly name = CLUSTER
  readonly sendsLater = true
  readonly ready: Promise<void>
  lastError: unknown
  readonly #own: MadeCluster
  readonly #coming = new WeakMap<NodeRedis, Coming>()
  readonly #life: Life

  constructor(original: NodeRedisCluster, private readonly settings: OwnSettings) {
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
    super(own, PER_CALL)
    this.#own = own
    this.#life = lives
    own.on('error', (error) => (this.lastError = error))
    own.on('node-error', (error) => (this.lastError = error))
    this.ready = this.#connect()
    this.ready.catch(() => this.#again(0))
  }

  get primaries(): number {
    return this.#own.masters.length
  }

  get moves(): boolean {
    return this.primaries > 1
  }

  get owners(): string[] {
    return parts(this.#own).masters.map((node) => node.address)
  }

  async line(call: Call, signal: AbortSignal, address?: string): Promise<Line> {
    const { slots, masters, nodeClient } = parts(this.#own)
    const named = masters.find((one) => one.address === address)
    const node = named ?? slots[slot(call.keys[0] ?? '')]?.master ?? masters[0]
    if (node === undefined) throw new Error('no node of the cluster is known')
    // A client that is connecting is not waited for.
    const client = node.client ?? (await Reflect.apply(nodeClient, this.#own, [node]))
    return open(client, this.settings, signal, named === undefined ? address : undefined)
  }

  again(key: string | undefined): Promise<void> | undefined {
    return this.#node(key)?.known.again
  }

  drop(key: string | undefined, error: Error): boolean {
    const node = this.#node(key)
    return node !== undefined && anew(node.client, node.known, error)
  }

  #node(key: string | undefined): { client: Made; known: Coming } | undefined {
    const client = key === undefined ? undefined : parts(this.#own).slots[slot(key)]?.master.client
    if (client === undefined) return undefined
    const known = this.#coming.get(client) ?? coming(client as Made)
    this.#coming.set(client, known)
    return { client: client as Made, known }
  }

  owner(key: string): string | undefined {
    return parts(this.#own).slots[slot(key)]?.master.address
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
    this.lastError = undefined
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

async function open(redis: NodeRedis, settings: OwnSettings, signal: AbortSignal, address?: string): Promise<Line> {
  const at = address === undefined ? {} : hostAndPort(address)
  const { again, end } = life(() => false)
  const own = redis.duplicate({
    ...settled(redis.options as Options | undefined, settings, { again, end }, at),
    commandOptions: PER_CALL,
  }) as Made
  // Version 5 forgets a call if the connection ends before it is written.
  const lost = new Promise<never>((_, reject) => own.on('error', reject))
  lost.catch(() => undefined)
  const close = () => {
    destroy(own)
    end.abort()
  }
  signal.addEventListener('abort', close, { once: true })
  try {
    await own.connect()
  } catch (error) {
    close()
    throw error
  }
  const sender = new NodeRedisSender(own, PER_CALL)
  return { send: (call) => Promise.race([sender.send(call), lost]), close }
}

function addressOf({ options }: NodeRedis): string {
  const socket = ((options as Options | undefined)?.socket ?? {}) as { host?: string; port?: number; path?: string }
  const { host = 'localhost', port = 6379, path } = socket
  return path ?? `${host}:${port}`
}

function coming(redis: Made): Coming {
  const known = new Coming(redis.isReady)
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
