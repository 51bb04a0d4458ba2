/** Calls on a client of node-redis. */

import type { Call, Sender } from '../call/call.js'

/** What is used of `createClient()` of node-redis. */
export interface NodeRedis {
  readonly isReady?: boolean
  readonly options?: object | undefined
  sendCommand(args: string[], options?: object): Promise<unknown>
  duplicate(overrides?: object): unknown
}

/** What is used of `createCluster()` of node-redis. */
export interface NodeRedisCluster {
  readonly slots: readonly { master: object }[]
  readonly masters: readonly object[]
  sendCommand(firstKey: string | undefined, isReadonly: boolean | undefined, args: string[], options?: object): Promise<unknown>
  duplicate(overrides?: object): unknown
}

/** What is used of `createClientPool()` of node-redis. */
export interface NodeRedisPool {
  readonly totalClients: number
  sendCommand(args: string[], options?: object): Promise<unknown>
  execute(task: (client: NodeRedis) => unknown): Promise<unknown>
}

/** What is used of `createSentinel()` of node-redis. */
export interface NodeRedisSentinel {
  /** The address of the primary, if a client is connected to it. */
  getMasterNode(): object | undefined
  on(event: 'topology-change', listener: (event: { type: string }) => void): unknown
  off(event: 'topology-change', listener: (event: { type: string }) => void): unknown
  sendCommand(isReadonly: boolean | undefined, args: string[], options?: object): Promise<unknown>
  /** The only way to a client with the options of its nodes, in all releases since 5.0. */
  _execute(isReadonly: boolean | undefined, task: (client: NodeRedis) => Promise<unknown>): Promise<unknown>
}

/** A node of a cluster. */
export interface Node {
  address: string
  /** There is none before the first attempt to connect. */
  client?: NodeRedis
}

/** The parts of a cluster whose types are too narrow to be named. */
export interface ClusterParts {
  masters: Node[]
  replicas?: Node[]
  slots: ({ master: Node } | undefined)[]
  nodeClient(node: Node): Promise<NodeRedis> | NodeRedis
  _options?: { defaults?: Options; keyPrefix?: unknown; rootNodes?: Options[]; nodeAddressMap?: unknown }
}

/** Options of a client or of the nodes of a cluster. */
export interface Options {
  socket?: object
  keyPrefix?: unknown
}

/** Whether this is a cluster client of node-redis. */
export function isNodeRedisCluster(redis: unknown): redis is NodeRedisCluster {
  return has(redis, 'sendCommand') && has(redis, 'nodeClient')
}

/** Whether this is a client of node-redis that finds its server with sentinels. */
export function isNodeRedisSentinel(redis: unknown): redis is NodeRedisSentinel {
  return has(redis, 'sendCommand') && has(redis, 'getMasterNode') && has(redis, '_execute')
}

/** Whether this is a pool of clients of node-redis. */
export function isNodeRedisPool(redis: unknown): redis is NodeRedisPool {
  return has(redis, 'sendCommand') && has(redis, 'execute') && typeof (redis as NodeRedisPool).totalClients === 'number'
}

/** Whether this is a client of node-redis with one connection. */
export function isNodeRedis(redis: unknown): redis is NodeRedis {
  return has(redis, 'sendCommand') && has(redis, 'duplicate') && typeof (redis as NodeRedis).isReady === 'boolean'
}

/** Sends calls on a client or a pool. */
export class NodeRedisSender implements Sender {
  readonly keyPrefix: string

  constructor(readonly redis: NodeRedis | NodeRedisPool, readonly options?: object) {
    this.keyPrefix = prefixOf(redis)
  }

  send(call: Call): Promise<unknown> {
    return this.redis.sendCommand(call.words, this.options)
  }
}

/** Sends calls to the primary that sentinels name, and those that only read to its replicas if the client does so. */
export class NodeRedisSentinelSender implements Sender {
  readonly keyPrefix: string

  constructor(readonly redis: NodeRedisSentinel) {
    this.keyPrefix = prefixOf(redis)
  }

  send(call: Call): Promise<unknown> {
    return this.redis.sendCommand(call.readonly, call.words)
  }
}

/** Sends calls on a cluster client, each to the node of its key. */
export class NodeRedisClusterSender implements Sender {
  readonly keyPrefix: string
  #next = 0

  constructor(readonly cluster: NodeRedisCluster, readonly options?: object) {
    const { _options } = parts(cluster)
    this.keyPrefix = prefix(_options?.keyPrefix ?? _options?.defaults?.keyPrefix)
  }

  async send(call: Call, signal?: AbortSignal): Promise<unknown> {
    const options = signal === undefined ? this.options : { ...this.options, abortSignal: signal }
    const [key] = call.keys
    if (key !== undefined) return this.cluster.sendCommand(key, call.readonly, call.words, options)
    const { masters } = parts(this.cluster)
    const send = async (node: Node) => (await parts(this.cluster).nodeClient(node)).sendCommand(call.words, options)
    if (call.goesEverywhere) return (await Promise.all(masters.map(send)))[0]
    // It is about its node, and a primary has more to say than a replica. They take turns.
    const node = masters[(this.#next += 1) % masters.length]
    return node === undefined ? this.cluster.sendCommand(undefined, false, call.words, options) : send(node)
  }
}

/**
 * The `keyPrefix` of a client, a pool, or a client with sentinels. The last two keep their options private. `_keyPrefix` is the
 * only way to it in all releases that have prefixes, which are those from 6.1 on.
 */
export function prefixOf(redis: object): string {
  const { options, _keyPrefix } = redis as { options?: Options; _keyPrefix?: unknown }
  return prefix(_keyPrefix ?? options?.keyPrefix)
}

/** A cluster with those parts whose types are too narrow. */
export function parts(cluster: NodeRedisCluster): ClusterParts {
  return cluster as unknown as ClusterParts
}

function has(value: unknown, method: string): boolean {
  return typeof (value as Readonly<Record<string, unknown>> | null)?.[method] === 'function'
}

function prefix(value: unknown): string {
  return value === undefined || value === null ? '' : String(value)
}
