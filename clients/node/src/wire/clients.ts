/**
 * What the package needs of a Redis client, and how it tells one kind from another: by what they have. So it imports none
 * of them, and works with the application's own copy.
 */

import { shown } from '../call/arguments.js'
import type { Sender } from '../call/call.js'
import { ConfigurationError } from '../errors.js'
import { isIoredis, IoredisClusterSender, IoredisSender, type Ioredis, type IoredisCluster } from './ioredis.js'
import { OwnIoredis, OwnIoredisCluster } from './ioredis-own.js'
import { isNodeRedis, isNodeRedisCluster, isNodeRedisPool, isNodeRedisSentinel } from './node-redis.js'
import { NodeRedisClusterSender, NodeRedisSender, NodeRedisSentinelSender } from './node-redis.js'
import type { NodeRedis, NodeRedisCluster, NodeRedisPool, NodeRedisSentinel } from './node-redis.js'
import { ofPool, ofSentinel, OwnFoundNodeRedis } from './node-redis-found.js'
import { OwnNodeRedis, OwnNodeRedisCluster } from './node-redis-own.js'
import type { OwnClient, OwnSettings } from './own.js'

/**
 * A client of node-redis (`createClient`, `createClientPool`, `createSentinel`, `createCluster`) or ioredis (`Redis`, also
 * with `sentinels`, and `Cluster`), version 5 or 6.
 */
export type RedisClient = NodeRedis | NodeRedisPool | NodeRedisSentinel | NodeRedisCluster | Ioredis | IoredisCluster

/** How calls are sent on a client as it is, and on connections of the package's own to the same server. */
interface Kind {
  isCluster: boolean
  sender(): Sender
  own(settings: OwnSettings): OwnClient
}

/** Sends calls on a client as it is. A `Sender` is returned as it is. */
export function senderOf(redis: RedisClient | Sender): Sender {
  return isSender(redis) ? redis : kindOf(redis).sender()
}

/** Opens connections to where a client is connected, with its credentials. */
export function ownClient(redis: RedisClient, settings: OwnSettings): OwnClient {
  return kindOf(redis).own(settings)
}

/** Whether a client is for a cluster. */
export function isCluster(redis: RedisClient): boolean {
  return kindOf(redis).isCluster
}

function kindOf(redis: RedisClient): Kind {
  const kind = (isCluster: boolean, sender: () => Sender, own: Kind['own']): Kind => ({ isCluster, sender, own })
  if (isIoredis(redis)) {
    if (!('nodes' in redis)) return kind(false, () => new IoredisSender(redis), (settings) => new OwnIoredis(redis, settings))
    return kind(true, () => new IoredisClusterSender(redis), (settings) => new OwnIoredisCluster(redis, settings))
  }
  if (isNodeRedisCluster(redis))
    return kind(true, () => new NodeRedisClusterSender(redis), (settings) => new OwnNodeRedisCluster(redis, settings))
  if (isNodeRedisSentinel(redis))
    return kind(false, () => new NodeRedisSentinelSender(redis), (settings) => new OwnFoundNodeRedis(ofSentinel(redis), settings))
  if (isNodeRedisPool(redis))
    return kind(false, () => new NodeRedisSender(redis), (settings) => new OwnFoundNodeRedis(ofPool(redis), settings))
  if (isNodeRedis(redis)) return kind(false, () => new NodeRedisSender(redis), (settings) => new OwnNodeRedis(redis, settings))
  throw unknown(redis)
}

function isSender(redis: unknown): redis is Sender {
  return typeof redis === 'object' && redis !== null && 'send' in redis && 'keyPrefix' in redis
}

function unknown(redis: unknown): ConfigurationError {
  const made =
    "createClient(), createClientPool(), createSentinel() or createCluster() of 'redis', " +
    "or new Redis() or new Cluster() of 'ioredis', version 5 or later"
  return new ConfigurationError(`a client is needed, made by ${made}, not ${shown(redis)}`)
}
