/** A cluster of which one primary is silent: the others are asked as before. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test, type TestContext } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { FixedWindow, Unavailable } from 'redis-ratelimit'
import { KINDS, type Kind, type MakeOptions } from './kinds.js'
import { eachKind, keyOf, limiterOn, limiterOnCluster, onCluster } from './limiters.js'
import { until, type Server } from './servers.js'

const hour = new FixedWindow(1000, '1h')

/** The first nodes of a cluster lose their connections, and answer nothing for a second. */
async function connectsSlowly(t: TestContext, kind: Kind, nodes: readonly Server[], count: number, client: MakeOptions = {}) {
  const options = { timeoutMs: 20_000, connectTimeoutMs: 20_000, breaker: { failures: 2, cooldownMs: 60_000 } }
  const { limiter } = await limiterOnCluster(t, kind, nodes.at(-1)!.port, options, client)
  for (const node of nodes.keys()) assert.equal((await limiter.limit(keyOf(node), hour)).answered, true)
  for (const { port } of nodes.slice(0, count)) {
    const redis = new Redis(port)
    await redis.multi().call('CLIENT', 'KILL', 'TYPE', 'normal').call('CLIENT', 'PAUSE', '1000', 'ALL').exec()
    redis.disconnect()
  }
  await pause(50)
  const calls = []
  for (let i = 0; i < 5; i += 1) {
    calls.push(limiter.limit(keyOf(0), hour))
    await pause(30)
  }
  assert.deepEqual((await Promise.all(calls)).map(({ error }) => error), Array(5).fill(undefined))
}

onCluster('a cluster with a silent primary', (nodes) => {
  for (const kind of KINDS) {
    test(`has an open breaker for that one only, with ${kind.name}`, async (t) => {
      const breaker = { failures: 2, cooldownMs: 60000 }
      const { limiter, lines } = await limiterOnCluster(t, kind, nodes[1]!.port, { timeoutMs: 1000, breaker })
      for (const node of [0, 1, 2]) await until(async () => (await limiter.limit(keyOf(node), hour)).answered, 'a connection')
      nodes[0]!.process.kill('SIGSTOP')
      try {
        for (let call = 0; call < 2; call += 1) await limiter.limit(keyOf(0), hour)
        const { error } = await limiter.limit(keyOf(0), hour)
        assert(error instanceof Unavailable && error.kind === 'breaker')
        assert.equal(error.node, `127.0.0.1:${nodes[0]!.port}`)
        for (const node of [1, 2, 1, 2]) assert.equal((await limiter.limit(keyOf(node), hour)).answered, true)
        assert.equal(limiter.counters.breakerOpened, 1)
        assert(lines.some((line) => line.includes(`breaker opened: 127.0.0.1:${nodes[0]!.port} did not answer 2 calls`)))
      } finally {
        nodes[0]!.process.kill('SIGCONT')
      }
    })

    test(`costs no call while it accepts a new connection slowly, with ${kind.name}`, (t) => connectsSlowly(t, kind, nodes, 1))

    test(`costs no call while all accept new connections slowly, with ${kind.name}`, (t) => connectsSlowly(t, kind, nodes, 3))

    if (kind.isIoredis) {
      test(`costs no call if the application's client connects its nodes anew by itself, with ${kind.name}`, (t) =>
        connectsSlowly(t, kind, nodes, 1, { clusterNodeRetryStrategy: () => 300 }))
    }

    test(`is asked by a limiter that was made meanwhile, with ${kind.name}`, async (t) => {
      const made = await kind.cluster(nodes[1]!.port)
      t.after(() => made.close())
      await until(async () => (await made.raw(['GET', keyOf(2)], keyOf(2))) === null, 'a client')
      nodes[0]!.process.kill('SIGSTOP')
      try {
        const { limiter } = await limiterOnCluster(t, { ...kind, cluster: async () => ({ ...made, close: () => {} }) }, 0, {
          timeoutMs: 3000,
          connectTimeoutMs: 2000,
        })
        for (const node of [1, 2]) assert.equal((await limiter.limit(keyOf(node), hour)).error, undefined)
        assert.equal((await limiter.limit(keyOf(1), hour, { wait: '5s' })).answered, true)
        assert.equal((await limiter.limit(keyOf(0), hour)).answered, false)
      } finally {
        nodes[0]!.process.kill('SIGCONT')
      }
    })
  }
})

eachKind('a wait', (kind, server) => {
  test('that finds the server again closes the breaker while it waits', async (t) => {
    const breaker = { failures: 1, cooldownMs: 1 }
    const { limiter } = await limiterOn(t, kind, server.port, { timeoutMs: 300, connectTimeoutMs: 10000, breaker })
    const key = `pool:${randomUUID()}`
    const lease = { capacity: 1, ttl: '1h' }
    const first = await limiter.lease(key, lease)
    assert(first.held)
    server.process.kill('SIGSTOP')
    await limiter.limit(key, hour)
    assert.equal(limiter.counters.breakerOpened, 1)
    // Longer than the cooldown.
    await pause(20)
    setTimeout(() => server.process.kill('SIGCONT'), 50)
    const waits = limiter.lease(key, { ...lease, wait: '50s' }, ({ held }) => held)
    await until(async () => (await server.cli('INFO', 'ratelimit')).includes('ratelimit_waiting:1'), 'a wait')
    await until(async () => (await limiter.limit(`other:${randomUUID()}`, hour)).answered, 'an answer meanwhile')
    await first.release()
    assert.equal(await waits, true)
  })
})
