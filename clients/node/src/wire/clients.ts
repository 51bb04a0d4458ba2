/**
 * What the package needs of a Redis client, and how it tells one kind from another: by what they have. So it imports none
 * of them, and works with the application's own copy.
 */

import type { Sender } from '../call/call.js'
import { ConfigurationError } from '../errors.js'
import { isIoredis, IoredisClusterSender, IoredisSender, type Ioredis, type IoredisCluster } from './ioredis.js'
import { ownIoredis, ownIoredisCluster } from './ioredis-own.js'
import { isNodeRedis, isNodeRedisCluster, NodeRedisClusterSender, NodeRedisSender } from './node-redis.js'
import type { NodeRedis, NodeRedisCluster } from './node-redis.js'
import { ownNodeRedis, ownNodeRedisCluster } from './node-redis-own.js'
import type { OwnClient, OwnSettings } from './own.js'

/** A client of node-redis (`createClient`, `createCluster`) or ioredis (`Redis`, `Cluster`), version 5 or 6. */
export type RedisClient = NodeRedis | NodeRedisCluster | Ioredis | IoredisCluster

/** Sends calls on a client as it is. A `Sender` is returned as it is. */
export function senderFor(redis: RedisClient | Sender): Sender {
  if (redis === null || typeof redis !== 'object') throw unknown()
  if (isSender(redis)) return redis
  if (isIoredis(redis)) return 'nodes' in redis ? new IoredisClusterSender(redis) : new IoredisSender(redis)
  if (isNodeRedisCluster(redis)) return new NodeRedisClusterSender(redis)
  if (isNodeRedis(redis)) return new NodeRedisSender(redis)
  throw unknown()
}

/** Opens connections to where a client is connected, with its credentials. */
export function ownClient(redis: RedisClient, settings: OwnSettings): OwnClient {
  if (isIoredis(redis)) return 'nodes' in redis ? ownIoredisCluster(redis, settings) : ownIoredis(redis, settings)
  if (isNodeRedisCluster(redis)) return ownNodeRedisCluster(redis, settings)
  if (isNodeRedis(redis) && redis.duplicate !== undefined && redis.isReady !== undefined) return ownNodeRedis(redis, settings)
  throw unknown()
}

/** Whether a client is for a cluster. */
export function isCluster(redis: RedisClient): boolean {
  return isNodeRedisCluster(redis) || (isIoredis(redis) && 'nodes' in redis)
}

function isSender(redis: object): redis is Sender {
  return 'send' in redis && 'keyPrefix' in redis
}

function unknown(): ConfigurationError {
  return new ConfigurationError(
    "a client is needed: createClient() or createCluster() of 'redis', or Redis or Cluster of 'ioredis', version 5 or later",
  )
}
