/** A slot of a cluster that is about to move to another node. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { FixedWindow } from 'redis-ratelimit'
import { slotOf } from '../dist/wire/slots.js'
import { KINDS } from './kinds.js'
import { keyOf, limiterOnCluster, onCluster } from './limiters.js'
import { Server } from './servers.js'

const hour = new FixedWindow(1000, '1h')

onCluster('a slot that moves', (nodes) => {
  const id = async (node: Server) => (await node.cli('CLUSTER', 'MYID')).trim()

  /** Begins to move the slot of a key from the first node to the second. */
  async function begin(): Promise<{ key: string; end(): Promise<void> }> {
    const key = keyOf(0)
    const [from, to] = nodes as [Server, Server]
    const number = String(slotOf(key))
    await to.cli('CLUSTER', 'SETSLOT', number, 'IMPORTING', await id(from))
    await from.cli('CLUSTER', 'SETSLOT', number, 'MIGRATING', await id(to))
    const end = async () => {
      for (const node of [to, from, nodes[2]!]) await node.cli('CLUSTER', 'SETSLOT', number, 'NODE', await id(to))
    }
    return { key, end }
  }

  for (const kind of KINDS) {
    test(`does not stop calls, be they such that wait, with ${kind.name}`, async (t) => {
      const { limiter } = await limiterOnCluster(t, kind, nodes[0]!.port)
      const { key, end } = await begin()
      assert.equal((await limiter.limit(`{${key}}`, hour)).answered, true)
      const lease = { capacity: 1, ttl: '30s', wait: '5s' }
      assert.equal(await limiter.lease(key, lease, ({ held }) => held), true)
      await end()
      assert.equal(await limiter.lease(key, lease, ({ held }) => held), true)
      assert.deepEqual([limiter.counters.unavailable, limiter.counters.breakerOpened], [0, 0])
    })

    test(`lets calls with several keys wait until their keys are together, with ${kind.name}`, async (t) => {
      const { limiter } = await limiterOnCluster(t, kind, nodes[0]!.port, { breaker: { failures: 1 } })
      const { key, end } = await begin()
      const [from, to] = nodes as [Server, Server]
      const [here, there] = [`{${key}}a`, `{${key}}b`]
      // ASKING is for one command. So the first key gets here before the slot is on its way.
      await from.cli('CLUSTER', 'SETSLOT', String(slotOf(key)), 'STABLE')
      await from.cli('RL.FIXEDWINDOW', here, '1000', '1h')
      await from.cli('CLUSTER', 'SETSLOT', String(slotOf(key)), 'MIGRATING', await id(to))
      const asked = limiter.limits([here, there], [hour])
      const waited = limiter.limits([here, there], [hour], { wait: '20s' })
      await pause(150)
      await from.cli('MIGRATE', '127.0.0.1', String(to.port), here, '0', '5000')
      await end()
      assert.equal((await asked).error, undefined)
      assert.equal((await waited).error, undefined)
      assert.equal(limiter.counters.unavailable, 0)
    })
  }
})
