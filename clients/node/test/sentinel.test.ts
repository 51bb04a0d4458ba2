/** Clients that find the primary with sentinels, and a failover. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { EventEmitter } from 'node:events'
import { after, before, describe, test } from 'node:test'
import { GROUP, KINDS, type MakeOptions } from './kinds.js'
import { asksItsClient, limiterOf } from './limiters.js'
import { startServer, until, type Server } from './servers.js'

const key = () => `user:${randomUUID()}`
const lease = { capacity: 1, ttl: '30s' }

interface Watched {
  /** The ports of the sentinels. */
  ports: number[]
  /** The primary as the sentinels know it. */
  primary(): Promise<Server>
  /** Makes the replica the primary. */
  failover(): Promise<void>
  stop(): Promise<void>
}

/** A primary, its replica, and two sentinels. */
async function watched(): Promise<Watched> {
  const servers: Server[] = []
  const stop = async () => void (await Promise.all(servers.map((server) => server.stop())))
  const start = async (...how: Parameters<typeof startServer>) => {
    const server = await startServer(...how)
    servers.push(server)
    return server
  }
  try {
    const first = await start(['--repl-diskless-sync-delay', '0'])
    const replica = await start(['--replicaof', '127.0.0.1', String(first.port), '--repl-diskless-sync-delay', '0'])
    const sentinels = [await start([], { sentinel: true }), await start([], { sentinel: true })] as const
    for (const { cli } of sentinels) {
      await cli('SENTINEL', 'MONITOR', GROUP, '127.0.0.1', String(first.port), '2')
    }
    const primary = async () => {
      const port = Number((await sentinels[0].cli('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', GROUP)).trim().split('\n')[1])
      return servers.find((server) => server.port === port)!
    }
    const isReplicated = async () => {
      const other = (await primary()) === first ? replica : first
      const role = await other.cli('ROLE')
      return role.startsWith('slave') && role.includes('connected')
    }
    for (const { cli } of sentinels) {
      const knows = async () => /^num-slaves\n1\n(.*\n)*^num-other-sentinels\n1\n/m.test(await cli('SENTINEL', 'MASTER', GROUP))
      await until(knows, 'sentinels that know each other and the replica', 60_000)
    }
    await until(isReplicated, 'a replica')
    const failover = async () => {
      const before = await primary()
      await until(async () => (await sentinels[0].cli('SENTINEL', 'FAILOVER', GROUP)).startsWith('OK'), 'the begin of a failover')
      await until(async () => (await primary()) !== before, 'a failover', 60_000)
    }
    return { ports: sentinels.map(({ port }) => port), primary, failover, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

describe('a primary that sentinels name', () => {
  let group: Watched
  before(async () => {
    group = await watched()
  })
  after(() => group?.stop())

  const cli: Server['cli'] = async (...words) => (await group.primary()).cli(...words)
  for (const kind of KINDS) {
    const open = (options: MakeOptions) => kind.sentinel(group.ports, options)
    const none = ["the sentinels' primary", 'the client of the sentinels is not connected to a primary'] as const
    asksItsClient(kind, open, cli, kind.isIoredis ? undefined : none)
  }

  for (const kind of KINDS.filter(({ isIoredis }) => !isIoredis)) {
    test(`is followed by a limiter as soon as ${kind.name} knows it`, async (t) => {
      const made = await kind.sentinel(group.ports)
      t.after(() => made.close())
      const { limiter } = limiterOf(t, made, {})
      const primary = await group.primary()
      const connections = async () => {
        const list = await primary.cli('CLIENT', 'LIST', 'TYPE', 'normal')
        return [...list.matchAll(/^id=(\d+) .* cmd=rl\./gm)].map(([, id]) => id)
      }
      await limiter.limit(key(), '1/h')
      const [before] = await connections()
      const sentinel = made.redis as unknown as EventEmitter
      const waiting = limiter.lease(key(), lease)
      sentinel.emit('topology-change', { type: 'REPLICA_ADD' })
      sentinel.emit('topology-change', { type: 'MASTER_CHANGE' })
      assert.equal((await waiting).held, true)
      await until(async () => {
        assert.equal((await limiter.limit(key(), '1/h')).answered, true)
        const now = await connections()
        return now.length === 1 && now[0] !== before
      }, 'another connection')
      const listeners = sentinel.listenerCount('topology-change')
      await limiter.close()
      assert.equal(sentinel.listenerCount('topology-change'), listeners - 1)
      assert.equal(limiter.counters.unavailable, 0)
    })
  }

  test('is found anew by all limiters after a failover, and keeps their leases', async (t) => {
    const limiters = await Promise.all(
      KINDS.map(async (kind) => {
        const made = await kind.sentinel(group.ports)
        t.after(() => made.close())
        return limiterOf(t, made, { timeoutMs: 1000 }).limiter
      }),
    )
    const leases = await Promise.all(limiters.map((limiter) => limiter.lease(key(), lease)))
    const answers = () => Promise.all(limiters.map(async (limiter) => (await limiter.limit(key(), '9/h')).answered))
    assert(!(await answers()).includes(false))
    const before = await group.primary()
    await group.failover()
    const primary = await group.primary()
    assert.notEqual(primary.port, before.port)
    await until(async () => (await primary.cli('ROLE')).startsWith('master'), 'a new primary')
    const calls = async () => Number(/cmdstat_rl\.gcra:calls=(\d+)/.exec(await primary.cli('INFO', 'commandstats'))?.[1] ?? 0)
    // The server before may answer for a moment more.
    const areAllHere = async () => {
      const asked = await calls()
      return !(await answers()).includes(false) && (await calls()) - asked === limiters.length
    }
    await until(areAllHere, 'answers of the new primary', 60_000)
    for (const held of leases) assert.equal(held.signal.aborted, false)
    for (const [i, limiter] of limiters.entries()) {
      const { key } = leases[i]!
      const wait = limiter.lease(key, { ...lease, wait: '20s' }, ({ held }) => held)
      await until(async () => (await primary.cli('INFO', 'ratelimit')).includes('ratelimit_waiting:1'), 'a wait')
      await leases[i]!.release()
      assert.equal(await wait, true)
    }
  })
})
