/** The four clients that the package is for, behind one interface. */

import * as ioredis6 from 'ioredis'
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis-5'
import { createClient as createClient6, createCluster as createCluster6 } from 'redis'
import { createClient as createClient5, createCluster as createCluster5 } from 'redis-5'
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
}

export interface MakeOptions {
  keyPrefix?: string
  username?: string
  password?: string
  /** Of ioredis. */
  autoPipelining?: boolean
  replicas?: boolean
}

export interface Kind {
  name: string
  isIoredis: boolean
  /** Whether the client has a `keyPrefix`. Version 5 of node-redis has none. */
  hasKeyPrefix: boolean
  client(port: number, options?: MakeOptions): Promise<Made>
  cluster(port: number, options?: MakeOptions): Promise<Made>
}

const ignore = () => undefined

// An option that is undefined is none that is missing.
function credentialsOf(username: string | undefined, password: string | undefined) {
  return { ...(username === undefined ? {} : { username }), ...(password === undefined ? {} : { password }) }
}

function ioredis(name: string, Redis: typeof Redis6 | typeof Redis5, Cluster: typeof Cluster6 | typeof Cluster5): Kind {
  return {
    name,
    isIoredis: true,
    hasKeyPrefix: true,
    async client(port, { keyPrefix = '', username, password, autoPipelining = false } = {}) {
      const credentials = credentialsOf(username, password)
      const redis = new (Redis as typeof Redis6)({
        host: '127.0.0.1',
        port,
        keyPrefix,
        enableAutoPipelining: autoPipelining,
        ...credentials,
      })
      redis.on('error', ignore)
      return { redis, raw: ([word = '', ...words]) => redis.call(word, ...words), close: () => redis.disconnect() }
    },
    async cluster(port, { keyPrefix = '', autoPipelining = false, replicas = false } = {}) {
      const nodes = [{ host: '127.0.0.1', port }]
      const cluster = new (Cluster as typeof Cluster6)(nodes, {
        keyPrefix,
        enableAutoPipelining: autoPipelining,
        scaleReads: replicas ? 'slave' : 'master',
      })
      cluster.on('error', ignore)
      return { redis: cluster, raw: ([word = '', ...words]) => cluster.call(word, ...words), close: () => cluster.disconnect() }
    },
  }
}

function nodeRedis(
  name: string,
  createClient: typeof createClient6 | typeof createClient5,
  createCluster: typeof createCluster6 | typeof createCluster5,
): Kind {
  const isSix = name.startsWith('node-redis 6')
  return {
    name,
    isIoredis: false,
    hasKeyPrefix: isSix,
    async client(port, { keyPrefix, username, password } = {}) {
      const prefixed = keyPrefix === undefined ? {} : { keyPrefix }
      const credentials = credentialsOf(username, password)
      const redis = (createClient as typeof createClient6)({ url: `redis://127.0.0.1:${port}`, ...prefixed, ...credentials })
      redis.on('error', ignore)
      const connected = redis.connect().catch(ignore)
      await Promise.race([connected, new Promise((resolve) => redis.once('error', resolve))])
      return { redis, raw: (words) => redis.sendCommand(words), close: () => redis.destroy() }
    },
    async cluster(port, { keyPrefix, replicas = false } = {}) {
      const prefixed = keyPrefix === undefined ? {} : { keyPrefix }
      const rootNodes = [{ url: `redis://127.0.0.1:${port}` }]
      const cluster = (createCluster as typeof createCluster6)({ rootNodes, useReplicas: replicas, ...prefixed })
      cluster.on('error', ignore)
      await cluster.connect()
      return { redis: cluster, raw: (words, key) => cluster.sendCommand(key, false, words), close: () => cluster.destroy() }
    },
  }
}

/** A release to test in place of them, such as `ioredis 5.0.0`: what `redis` or `ioredis` is then. */
const RELEASE = process.env['RELEASE']

function released(name: string): Kind {
  return name.startsWith('ioredis') ? ioredis(name, Redis6, Cluster6) : nodeRedis(name, createClient6, createCluster6)
}

/** Both libraries, in both versions. */
export const KINDS: readonly Kind[] = RELEASE !== undefined ? [released(RELEASE)] : [
  nodeRedis('node-redis 6', createClient6, createCluster6),
  nodeRedis('node-redis 5', createClient5, createCluster5),
  ioredis('ioredis 6', Redis6, Cluster6),
  ioredis('ioredis 5', Redis5, Cluster5),
]
