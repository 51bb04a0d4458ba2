/** The clients with which the backend for rate-limiter-flexible is tested. */

import { Cluster as Cluster6, Redis as Redis6 } from 'ioredis'
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis-5'
import * as node6 from 'redis'
import * as node5 from 'redis-5'
import type { Server } from './servers.js'

/** A connected client, and how it is closed. */
export interface Opened {
  client: object
  close(): Promise<unknown> | unknown
}

type Open = (port: number) => Promise<Opened>

/** Clients of one server. */
export const SINGLE: Record<string, Open> = {
  'ioredis 6': (port) => ioredis(new Redis6(port, '127.0.0.1')),
  'ioredis 6 with keyPrefix': (port) => ioredis(new Redis6(port, '127.0.0.1', { keyPrefix: 'app:' })),
  'ioredis 6 with auto-pipelining': (port) => ioredis(new Redis6(port, '127.0.0.1', { enableAutoPipelining: true, keyPrefix: 'app:' })),
  'ioredis 5 with keyPrefix': (port) => ioredis(new Redis5(port, '127.0.0.1', { keyPrefix: 'app:' })),
  'node-redis 6': (port) => nodeRedis(node6.createClient({ url: url(port) })),
  'node-redis 6 with keyPrefix': (port) => nodeRedis(node6.createClient({ url: url(port), keyPrefix: 'app:' })),
  'node-redis 6 with RESP2': (port) => nodeRedis(node6.createClient({ url: url(port), RESP: 2 })),
  'node-redis 6, a pool': (port) => nodeRedis(node6.createClientPool({ url: url(port) })),
  'node-redis 5': (port) => nodeRedis(node5.createClient({ url: url(port) })),
}

/** Clients of a cluster, one node of which listens at the port. */
export const CLUSTER: Record<string, Open> = {
  'ioredis 6, a cluster': (port) => ioredis(new Cluster6([{ host: '127.0.0.1', port }])),
  'ioredis 6, a cluster with keyPrefix and auto-pipelining': (port) =>
    ioredis(new Cluster6([{ host: '127.0.0.1', port }], { keyPrefix: 'app:', enableAutoPipelining: true })),
  'ioredis 5, a cluster with keyPrefix': (port) => ioredis(new Cluster5([{ host: '127.0.0.1', port }], { keyPrefix: 'app:' })),
  'node-redis 6, a cluster': (port) => nodeRedis(node6.createCluster({ rootNodes: [{ url: url(port) }] })),
  'node-redis 6, a cluster with keyPrefix': (port) =>
    nodeRedis(node6.createCluster({ rootNodes: [{ url: url(port) }], keyPrefix: 'app:' })),
  'node-redis 5, a cluster': (port) => nodeRedis(node5.createCluster({ rootNodes: [{ url: url(port) }] })),
}

const url = (port: number) => `redis://127.0.0.1:${port}`

interface Ioredis {
  on(event: string, listener: () => void): unknown
  ping(): Promise<string>
  disconnect(): void
}

async function ioredis(client: Ioredis): Promise<Opened> {
  client.on('error', () => {})
  await client.ping()
  return { client, close: () => client.disconnect() }
}

interface NodeRedis {
  on(event: 'error', listener: () => void): unknown
  connect(): Promise<unknown>
  destroy(): unknown
}

async function nodeRedis(client: NodeRedis): Promise<Opened> {
  client.on('error', () => {})
  await client.connect()
  return { client, close: () => client.destroy() }
}

/** The number of calls of a command, or of errors with a code, since the server started. */
export async function counted(server: Server, section: 'commandstats' | 'errorstats', name: string): Promise<number> {
  const found = new RegExp(`^(?:cmdstat|errorstat)_${name}:(?:calls|count)=(\\d+)`, 'm').exec(await server.cli('INFO', section))
  return Number(found?.[1] ?? 0)
}

/** Errors are those of the calls. */
export function quiet<Client extends { on(event: 'error', listener: () => void): unknown }>(client: Client): Client {
  client.on('error', () => {})
  return client
}
