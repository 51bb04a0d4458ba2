import assert from 'node:assert/strict'
import { after, before, describe, test, type TestContext } from 'node:test'
import { Cluster } from 'ioredis'
import { Concurrent, RateLimiter, SlidingLog, TokenBucket, type RateLimiterOptions } from 'redis-ratelimit'
import { Gate, type Rule } from 'redis-ratelimit/gate'
import { user, type Asking } from './gate-harness.js'
import { quiet } from './rate-limiter-flexible.clients.js'
import { startCluster } from './servers.js'

describe('a gate on a cluster', () => {
  let cluster: Awaited<ReturnType<typeof startCluster>>
  before(async () => void (cluster = await startCluster()))
  after(() => cluster?.stop())

  function made(t: TestContext, rules: Rule<Asking>[], options: RateLimiterOptions = {}) {
    const redis = quiet(new Cluster([{ host: '127.0.0.1', port: cluster.port }], { keyPrefix: 'app:' }))
    const limiter = new RateLimiter(redis, { prefix: 'web:', timeoutMs: 3000, logger: () => {}, ...options })
    t.after(async () => {
      redis.disconnect()
      await limiter.close()
    })
    return { gate: new Gate<Asking>({ limiter, rules }), limiter }
  }

  test('rules for one caller are one call, and none goes to a wrong node', async (t) => {
    const { gate, limiter } = made(t, [
      { name: 'rate', key: user, limit: new SlidingLog(9, '1m') },
      { name: 'tokens', key: user, limit: new TokenBucket(100, 1, '1h'), estimate: 60 },
      { name: 'streams', key: user, limit: new Concurrent(3, '1m') },
    ])
    const users = Array.from({ length: 50 }, (_, i) => `user ${i}`)
    const moved = async () => (await Promise.all(cluster.nodes.map((node) => node.cli('INFO', 'errorstats')))).join().match(/MOVED:count=\d+/g)
    await (await gate.enter({ user: 'first' }, undefined)).end()
    const before = await moved()
    for (const pass of await Promise.all(users.map((user) => gate.enter({ user }, undefined)))) {
      assert.equal(pass.refusal, undefined)
      pass.spent['tokens'] = 10
      await pass.end()
    }
    assert.deepEqual(await moved(), before)
    assert.equal(limiter.counters.asked, 51)
    const { remaining } = await limiter.peek('tokens:{user 7}', new TokenBucket(100, 1, '1h'), { cost: 0 })
    assert.equal(remaining, 90)
    assert.equal((await limiter.peek('streams:{user 7}', new Concurrent(3, '1m', { id: 'x' }), { cost: 0 })).remaining, 3)
  })
})
