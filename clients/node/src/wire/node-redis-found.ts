/**
 * Connections of the package's own, made from a client of node-redis that does not show its options: a pool, or one that
 * finds its server with sentinels. It is asked for a client of its own, whose options these connections have.
 */

import type { Call } from '../call/call.js'
import { NoReply } from '../decide/failure.js'
import { prefixOf } from './node-redis.js'
import type { NodeRedis, NodeRedisPool, NodeRedisSentinel } from './node-redis.js'
import { OwnNodeRedis } from './node-redis-own.js'
import { Own, quiet, type Line, type OwnSettings } from './own.js'

/** A client that is asked for its server. */
export interface Source {
  /** The server, as errors and the log name it. */
  name: string
  keyPrefix: string
  /** A client that is connected to the server. */
  find(): Promise<NodeRedis>
  /** Calls `listener` whenever another server takes over. Returns what ends that. `undefined`: none ever does. */
  watch?(listener: () => void): () => void
}

/** A pool, which must be open. */
export function ofPool(pool: NodeRedisPool): Source {
  const find = () => pool.execute((client) => client) as Promise<NodeRedis>
  return { name: "the pool's server", keyPrefix: prefixOf(pool), find }
}

/** The primary that sentinels name. Their client must be connected, and finds the next primary after a failover. */
export function ofSentinel(sentinel: NodeRedisSentinel): Source {
  async function find(): Promise<NodeRedis> {
    // Some releases of version 5 and 6 do not return from `_execute` if they are not connected.
    if (sentinel.getMasterNode() === undefined) throw new Error('the client of the sentinels is not connected to a primary')
    return (await sentinel._execute(false, async (client) => client)) as NodeRedis
  }
  function watch(listener: () => void): () => void {
    const told = ({ type }: { type: string }) => (type === 'MASTER_CHANGE' ? listener() : undefined)
    sentinel.on('topology-change', told)
    return () => void sentinel.off('topology-change', told)
  }
  return { name: "the sentinels' primary", keyPrefix: prefixOf(sentinel), find, watch }
}

// How often a client is asked that is not yet connected, in ms.
const LOOK = 50

/** Connections for a client of this kind. */
export class OwnFoundNodeRedis extends Own {
  readonly ready: Promise<void>
  readonly moved: Promise<void>
  readonly #unwatch: (() => void) | undefined
  #found: OwnNodeRedis | undefined
  #isClosed = false

  constructor(private readonly source: Source, settings: OwnSettings) {
    super(source.name, { keyPrefix: source.keyPrefix, send: async (call) => this.#known.send(call) }, settings)
    let moved = () => {}
    this.moved = new Promise((resolve) => (moved = resolve))
    this.#unwatch = source.watch?.(() => this.#found !== undefined && moved())
    const { runtime, connectTimeout } = settings
    this.ready = quiet(
      new Promise((resolve, reject) => {
        const cancel = runtime.later(connectTimeout, () => reject(this.coming.lastError))
        void this.#find().then(resolve, reject).finally(cancel)
      }),
    )
  }

  override get moves(): boolean {
    return this.source.watch !== undefined
  }

  override get lastError(): unknown {
    return this.#found === undefined ? this.coming.lastError : this.#found.lastError
  }

  override again(key: string | undefined): Promise<void> | undefined {
    return this.#found?.again(key)
  }

  drop(key: string | undefined, error: Error): boolean {
    return this.#found?.drop(key, error) ?? false
  }

  async line(call: Call, signal: AbortSignal, address?: string): Promise<Line> {
    return this.#known.line(call, signal, address)
  }

  close(): void {
    this.#isClosed = true
    this.#unwatch?.()
    this.#found?.close()
  }

  get #known(): OwnNodeRedis {
    if (this.#found === undefined) throw new NoReply('connection', 'the server is not known', false)
    return this.#found
  }

  // The application may connect its client later.
  async #find(): Promise<void> {
    while (!this.#isClosed) {
      try {
        const client = await this.source.find()
        if (this.#isClosed) return
        this.#found = new OwnNodeRedis(client, this.settings)
        return await this.#found.ready
      } catch (error) {
        this.coming.lastError = error
        if (this.#found !== undefined) throw error
      }
      await new Promise<void>((resolve) => this.settings.runtime.later(LOOK, resolve))
    }
  }
}
