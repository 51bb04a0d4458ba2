/** A cluster with a replica: reading from it, and a failover. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { Commands, FixedWindow } from 'redis-ratelimit'
import { KINDS, type Kind } from './kinds.js'
import { keyOf, limiterOf, limiterOnCluster, onCluster } from './limiters.js'
import { until, type Server } from './servers.js'

const hour = new FixedWindow(1000, '1h')

const calls = async (server: Server, command: string) =>
  Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(await server.cli('INFO', 'commandstats'))?.[1] ?? 0)

onCluster('a cluster with a replica', (nodes) => {
  // Of the first node, which has the replica.
  const key = keyOf(0)

  for (const kind of KINDS) {
    test(`which answers looks, if wanted, and is asked for nothing else by ${kind.name}`, async (t) => {
      const replica = nodes[3]!
      const { port } = nodes[1]!
      const reads = await limiterOnCluster(t, kind, port, { readFromReplicas: true })
      const plain = await limiterOnCluster(t, kind, port)
      const client = await kind.cluster(port, { replicas: true })
      t.after(() => client.close())
      const commands = new Commands(client.redis)

      assert.equal((await plain.limiter.limit(key, hour)).answered, true)
      const [peeks, multiPeeks] = [await calls(replica, 'rl.peek'), await calls(replica, 'rl.multipeek')]
      for (let i = 0; i < 5; i += 1) assert.equal((await plain.limiter.peek(key, hour)).answered, true)
      assert.equal(await calls(replica, 'rl.peek'), peeks)
      for (let i = 0; i < 20; i += 1) {
        assert.equal((await reads.limiter.limit(key, hour)).answered, true)
        assert.equal((await reads.limiter.peek(key, hour)).answered, true)
        await commands.fixedWindow(key, 1000, '1h')
        await commands.multiPeek([key], [hour])
      }
      assert((await calls(replica, 'rl.peek')) > peeks, 'the limiter')
      assert((await calls(replica, 'rl.multipeek')) > multiPeeks, 'the client as it is')
      assert.equal(await reads.limiter.ready({ limits: ['10/s'] }), true)
      assert.equal(reads.limiter.counters.unavailable, 0)
    })

    test(`which is not asked for what it does not know by ${kind.name}`, async (t) => {
      const replica = nodes[3]!
      const { limiter } = await limiterOnCluster(t, kind, nodes[1]!.port, { readFromReplicas: true })
      await limiter.commands.policySet('api', ['10/h'])
      const before = [await calls(replica, 'rl.askpeek'), await calls(replica, 'rl.top'), await calls(replica, 'rl.policy\\|get')]
      for (let i = 0; i < 12; i += 1) {
        assert.equal((await limiter.peek(key, 'api')).answered, true)
        await limiter.commands.top()
        assert.notEqual(await limiter.commands.policyGet('api'), null)
      }
      assert.equal(await limiter.ready({ policies: ['api'] }), true)
      assert.deepEqual(
        [await calls(replica, 'rl.askpeek'), await calls(replica, 'rl.top'), await calls(replica, 'rl.policy\\|get')],
        before,
      )
    })

    test(`whose silence is none of the cluster's by ${kind.name}`, async (t) => {
      const replica = nodes[3]!
      const { limiter } = await limiterOnCluster(t, kind, nodes[1]!.port, { readFromReplicas: true, timeoutMs: 500 })
      for (let i = 0; i < 5; i += 1) assert.equal((await limiter.peek(key, hour)).answered, true)
      replica.process.kill('SIGSTOP')
      try {
        for (let i = 0; i < 7; i += 1) assert.equal((await limiter.peek(key, hour)).answered, true)
        assert.equal((await limiter.limit(key, hour)).answered, true)
      } finally {
        replica.process.kill('SIGCONT')
      }
      assert.deepEqual([limiter.counters.unavailable, limiter.counters.breakerOpened], [0, 0])
    })
  }

  test('which takes over, and all limiters find it', async (t) => {
    const open = (kind: Kind) => limiterOnCluster(t, kind, nodes[1]!.port, { timeoutMs: 1000 })
    const limiters = (await Promise.all(KINDS.map(open))).map(({ limiter }) => limiter)
    const answers = () => Promise.all(limiters.map(async (limiter) => (await limiter.limit(key, hour)).answered))
    assert.deepEqual(await answers(), [true, true, true, true])
    const made = await Promise.all(KINDS.map((kind) => kind.cluster(nodes[0]!.port)))
    // They know the other nodes before that one is gone: one of ioredis connects in the background.
    await Promise.all(made.map(({ raw }) => raw(['EXISTS', key], key)))
    nodes[0]!.process.kill('SIGKILL')
    await until(async () => !(await answers()).includes(true), 'an outage')
    await until(async () => !(await answers()).includes(false), 'a failover', 60_000)
    for (const limiter of limiters) {
      const lease = { capacity: 1, ttl: '9s', wait: '1s' }
      await until(() => limiter.lease(`{${key}}:${randomUUID()}`, lease, ({ held }) => held), 'a wait at the new primary')
    }
    // The only node that their clients were given is gone.
    for (const client of made) {
      const { limiter } = limiterOf(t, client, { timeoutMs: 1000 })
      await until(async () => (await limiter.limit(key, hour)).answered, 'an answer of the others')
    }
  })
}, { replica: true })
