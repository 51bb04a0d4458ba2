/** The clients that the package is for, behind one interface. */

import * as ioredis6 from 'ioredis'
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis-5'
import * as redis6 from 'redis'
import * as redis5 from 'redis-5'
import type { RedisClient } from 'redis-ratelimit'

// The first release of ioredis has its class as the default export only.
const { Cluster: Cluster6 } = ioredis6
const Redis6 = ioredis6.default as unknown as typeof ioredis6.Redis

/** A client, and how it ends. */
export interface Made {
  redis: RedisClient
  /** Sends words as they are. On a cluster the first key must be named. */
  raw(words: string[], key?: string): Promise<unknown>
  close(): void
  /** Of pools and sentinels of node-redis. */
  connect?(): Promise<unknown>
}

export interface MakeOptions {
  /** Whether a pool or a client with sentinels of node-redis is connected. By default it is. */
  isConnected?: boolean
  keyPrefix?: string
  username?: string
  password?: string
  /** Of ioredis. */
  autoPipelining?: boolean
  replicas?: boolean
  /** Of ioredis, in ms. */
  commandTimeout?: number
  /** In ms. */
  socketTimeout?: number
  /** Of ioredis from version 6 on: when the client of a cluster connects a lost node anew, in ms. */
  clusterNodeRetryStrategy?: () => number
}

export interface Kind {
  name: string
  isIoredis: boolean
  /** Whether the client has a `keyPrefix`. node-redis has none before 6.1. */
  hasKeyPrefix: boolean
  client(port: number, options?: MakeOptions): Promise<Made>
  cluster(port: number, options?: MakeOptions): Promise<Made>
  /** Of node-redis. */
  pool?(port: number, options?: MakeOptions): Promise<Made>
  /** A client of the primary that sentinels at these ports call `GROUP`. */
  sentinel(ports: readonly number[], options?: MakeOptions): Promise<Made>
}

/** What sentinels call the servers. */
export const GROUP = 'limits'

const ignore = () => undefined

// An option that is undefined is none that is missing.
const given = (options: object) => Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))

function ioredis(name: string, Redis: typeof Redis6 | typeof Redis5, Cluster: typeof Cluster6 | typeof Cluster5): Kind {
  return {
    name,
    isIoredis: true,
    hasKeyPrefix: true,
    async client(port, { keyPrefix = '', username, password, autoPipelining = false, commandTimeout, socketTimeout } = {}) {
      const options = { host: '127.0.0.1', port, keyPrefix, enableAutoPipelining: autoPipelining }
      const redis = new (Redis as typeof Redis6)({ ...options, ...given({ username, password, commandTimeout, socketTimeout }) })
      redis.on('error', ignore)
      return { redis, raw: ([word = '', ...words]) => redis.call(word, ...words), close: () => redis.disconnect() }
    },
    async cluster(port, { keyPrefix = '', autoPipelining = false, replicas = false, commandTimeout, clusterNodeRetryStrategy } = {}) {
      const nodes = [{ host: '127.0.0.1', port }]
      const cluster = new (Cluster as typeof Cluster6)(nodes, {
        keyPrefix,
        enableAutoPipelining: autoPipelining,
        scaleReads: replicas ? 'slave' : 'master',
        redisOptions: given({ commandTimeout }),
        ...given({ clusterNodeRetryStrategy }),
      })
      cluster.on('error', ignore)
      return { redis: cluster, raw: ([word = '', ...words]) => cluster.call(word, ...words), close: () => cluster.disconnect() }
    },
    async sentinel(ports, { keyPrefix = '', username, password } = {}) {
      const redis = new (Redis as typeof Redis6)({
        sentinels: ports.map((port) => ({ host: '127.0.0.1', port })),
        name: GROUP,
        keyPrefix,
        ...given({ username, password }),
      })
      redis.on('error', ignore)
      return { redis, raw: ([word = '', ...words]) => redis.call(word, ...words), close: () => redis.disconnect() }
    },
  }
}

function nodeRedis(name: string, library: typeof redis6 | typeof redis5): Kind {
  const { createClient, createClientPool, createCluster, createSentinel } = library as typeof redis6
  return {
    name,
    isIoredis: false,
    hasKeyPrefix: /^node-redis 6(?!\.0\.)/.test(name),
    async client(port, { keyPrefix, username, password, socketTimeout } = {}) {
      const redis = createClient({ url: `redis://127.0.0.1:${port}`, ...given({ keyPrefix, username, password }), socket: given({ socketTimeout }) })
      redis.on('error', ignore)
      const connected = redis.connect().catch(ignore)
      await Promise.race([connected, new Promise((resolve) => redis.once('error', resolve))])
      return { redis, raw: (words) => redis.sendCommand(words), close: () => void (redis.isOpen && redis.destroy()) }
    },
    async cluster(port, { keyPrefix, replicas = false } = {}) {
      const cluster = createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${port}` }], useReplicas: replicas, ...given({ keyPrefix }) })
      cluster.on('error', ignore)
      await cluster.connect()
      return { redis: cluster, raw: (words, key) => cluster.sendCommand(key, false, words), close: () => cluster.destroy() }
    },
    async pool(port, { keyPrefix, username, password, isConnected = true } = {}) {
      const options = { url: `redis://127.0.0.1:${port}`, ...given({ keyPrefix, username, password }) }
      const redis = createClientPool(options, { minimum: 1, maximum: 2 })
      redis.on('error', ignore)
      const connect = () => redis.connect()
      if (isConnected) await connect()
      return { redis, raw: (words) => redis.sendCommand(words), close: () => redis.destroy(), connect }
    },
    async sentinel(ports, { keyPrefix, username, password, isConnected = true } = {}) {
      const redis = createSentinel({
        name: GROUP,
        sentinelRootNodes: ports.map((port) => ({ host: '127.0.0.1', port })),
        nodeClientOptions: given({ username, password }),
        ...given({ keyPrefix }),
      })
      redis.on('error', ignore)
      const connect = () => redis.connect()
      if (isConnected) await connect()
      return { redis, raw: (words) => redis.sendCommand(false, words), close: () => void redis.destroy(), connect }
    },
  }
}

/** A release to test in place of them, such as `ioredis 5.0.0`: what `redis` or `ioredis` is then. */
const RELEASE = process.env['RELEASE']

function released(name: string): Kind {
  if (name.startsWith('ioredis')) return ioredis(name, Redis6, Cluster6)
  const { pool, ...others } = nodeRedis(name, redis6)
  // node-redis 5.0.0 does not export pools.
  return 'createClientPool' in redis6 && pool !== undefined ? { ...others, pool } : others
}

/** Both libraries, in both versions. */
export const KINDS: readonly Kind[] = RELEASE !== undefined ? [released(RELEASE)] : [
  nodeRedis('node-redis 6', redis6),
  nodeRedis('node-redis 5', redis5),
  ioredis('ioredis 6', Redis6, Cluster6),
  ioredis('ioredis 5', Redis5, Cluster5),
]
