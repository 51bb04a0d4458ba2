/** Limiters of a test, which end with it, and the servers of several tests. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, type TestContext } from 'node:test'
import { RateLimiter, type RateLimiterOptions } from 'redis-ratelimit'
import { slot } from '../dist/wire/slots.js'
import { KINDS, type Kind, type MakeOptions } from './kinds.js'
import { startCluster, startServer, until, type Server } from './servers.js'

/** Tests on a server of their own. It is there when they run. */
export function onServer(what: string, tests: (server: Server) => void, prepare: (server: Server) => unknown = () => {}): void {
  describe(what, () => {
    const server = {} as Server
    before(async () => void (await prepare(Object.assign(server, await startServer()))))
    after(() => server.stop?.())
    tests(server)
  })
}

/** Tests on a cluster of their own, whose nodes have the slots in order. */
export function onCluster(what: string, tests: (nodes: Server[]) => void, options: Parameters<typeof startCluster>[0] = {}): void {
  describe(what, () => {
    const nodes: Server[] = []
    before(async () => void nodes.push(...(await startCluster(options)).nodes))
    after(() => Promise.all(nodes.map((node) => node.stop())))
    tests(nodes)
  })
}

/** A new key of a node of a cluster of three. */
export function keyOf(node: number): string {
  for (;;) {
    const key = `user:${randomUUID()}`
    if (Math.floor((slot(key) * 3) / 16384) === node) return key
  }
}

/** Tests with each client, on a server of its own. */
export function eachKind(what: string, tests: (kind: Kind, server: Server) => void, prepare?: (server: Server) => unknown): void {
  for (const kind of KINDS) onServer(`${what}, ${kind.name}`, (server) => tests(kind, server), prepare)
}

/** A limiter on a client of this kind, and the lines of its log. */
export async function limiterOn(
  t: TestContext,
  kind: Kind,
  port: number,
  options: RateLimiterOptions = {},
  client: MakeOptions = {},
) {
  const made = await kind.client(port, client)
  return limiterOf(t, made, options)
}

/** The same on a cluster. */
export async function limiterOnCluster(
  t: TestContext,
  kind: Kind,
  port: number,
  options: RateLimiterOptions = {},
  client: MakeOptions = {},
) {
  const made = await kind.cluster(port, client)
  return limiterOf(t, made, options)
}

/** A limiter on any client. */
export function limiterOf(t: TestContext, made: Awaited<ReturnType<Kind['client']>>, options: RateLimiterOptions) {
  const lines: string[] = []
  // Longer time-outs than a service would have: the machine may be busy.
  const limiter = new RateLimiter(made.redis, {
    timeoutMs: 5000,
    connectTimeoutMs: 5000,
    logger: (line) => lines.push(line),
    ...options,
  })
  t.after(async () => {
    await limiter.close()
    made.close()
  })
  return { limiter, lines, raw: made.raw }
}

/** A limiter answers limits, a check, leases, and more waits than a pool has clients: they have connections of their own. */
export async function works(limiter: RateLimiter, cli: Server['cli']): Promise<void> {
  const [user, room, lease] = [randomUUID(), randomUUID(), { capacity: 1, ttl: '30s' }]
  for (const allowed of [true, false]) assert.equal((await limiter.limit(user, '1/h')).allowed, allowed)
  assert.equal(await limiter.ready({ limits: ['10/s'] }), true)
  const first = await limiter.lease(room, lease)
  const waits = Array.from({ length: 5 }, () => limiter.lease(room, { ...lease, wait: '20s' }, ({ held }) => held))
  await until(async () => (await cli('INFO', 'ratelimit')).includes('ratelimit_waiting:5'), 'five waits')
  assert.equal((await limiter.limit(randomUUID(), '1/h')).answered, true)
  await first.release()
  assert.deepEqual(await Promise.all(waits), [true, true, true, true, true])
}
