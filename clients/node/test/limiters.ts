/** Limiters of a test, which end with it, and the servers of several tests. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test, type TestContext } from 'node:test'
import { Commands, RateLimiter, type RateLimiterOptions } from 'redis-ratelimit'
import { slotOf } from '../dist/wire/slots.js'
import { KINDS, type Kind, type Made, type MakeOptions } from './kinds.js'
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
    if (Math.floor((slotOf(key) * 3) / 16384) === node) return key
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

/**
 * Tests of a client that does not show its options, and so is asked for its server: a pool, or one with sentinels.
 *
 * @param none - the node and the reason of a call while it is not connected. Not all need to be connected
 */
export function asksItsClient(kind: Kind, open: (options: MakeOptions) => Promise<Made>, cli: Server['cli'], none: readonly [string, string] | undefined): void {
  const opened = async (t: TestContext, options: MakeOptions = {}, settings: RateLimiterOptions = {}) => {
    const made = await open(options)
    t.after(() => made.close())
    return { made, limiter: limiterOf(t, made, settings).limiter }
  }
  const key = () => `user:${randomUUID()}`

  test(`${kind.name} answers limits, leases and waits, and keeps no connection at the end`, async (t) => {
    const { made, limiter } = await opened(t)
    await made.raw(['PING'])
    const connections = async () => (await cli('CLIENT', 'LIST', 'TYPE', 'normal')).trim().split('\n').length
    await until(() => limiter.ready(), 'a connection')
    const before = await connections()
    const [user, room, lease] = [key(), key(), { capacity: 1, ttl: '30s' }]
    for (const allowed of [true, false]) assert.equal((await limiter.limit(user, '1/h')).allowed, allowed)
    const first = await limiter.lease(room, lease)
    // More than the pool has clients: waits are on connections of their own.
    const waits = Array.from({ length: 5 }, () => limiter.lease(room, { ...lease, wait: '20s' }, ({ held }) => held))
    await until(async () => (await cli('INFO', 'ratelimit')).includes('ratelimit_waiting:5'), 'five waits')
    assert.equal((await limiter.limit(key(), '1/h')).answered, true)
    await first.release()
    assert.deepEqual(await Promise.all(waits), [true, true, true, true, true])
    await limiter.close()
    await until(async () => (await connections()) < before, 'the end of all connections')
  })

  test(`${kind.name} sends the commands of an application as it is`, async (t) => {
    const { made, limiter } = await opened(t, kind.hasKeyPrefix ? { keyPrefix: 'app:' } : {})
    const user = key()
    assert.equal((await new Commands(made.redis).gcra(user, 0, 1, '1h')).allowed, true)
    assert.equal((await limiter.limit(user, '1/h')).allowed, false)
    assert.equal((await cli('EXISTS', kind.hasKeyPrefix ? `app:${user}` : user)).trim(), '1')
  })

  test(`${kind.name} may be connected after the limiter was made`, async (t) => {
    const { made, limiter } = await opened(t, { isConnected: false })
    const first = limiter.limit(key(), '1/h')
    await made.connect?.()
    assert.equal((await first).answered, true)
  })

  test(`${kind.name} that is not connected is no answer`, { skip: none === undefined }, async (t) => {
    const { made, limiter } = await opened(t, { isConnected: false }, { connectTimeoutMs: 100, timeoutMs: 100, breaker: null })
    const { answered, error } = await limiter.limit(key(), '1/h')
    assert.deepEqual([answered, error?.kind, error?.maybeSent, error?.node, error?.reason], [false, 'connection', false, ...none!])
    await made.connect?.()
    await until(async () => (await limiter.limit(key(), '1/h')).answered, 'an answer')
  })
}
