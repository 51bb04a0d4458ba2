import assert from 'node:assert/strict'
import { after, before, describe, test, type TestContext } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Cluster } from 'ioredis'
import { Concurrent, FixedWindow, RateLimiter, SlidingLog, TokenBucket, type RateLimiterOptions } from 'redis-ratelimit'
import { Gate, type Rule } from 'redis-ratelimit/gate'
import { team, user, type Asking } from './gate-harness.js'
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

  test('rules for several callers are asked in turn, and given back if a later one refuses', async (t) => {
    const { gate, limiter } = made(t, [
      { name: 'user', key: user, limit: new FixedWindow(9, '1h') },
      { name: 'held', key: user, limit: new TokenBucket(100, 1, '1h'), estimate: 60 },
      { name: 'streams', key: user, limit: new Concurrent(3, '1m') },
      { name: 'team', key: team, limit: new FixedWindow(2, '1h') },
    ])
    const codes = []
    for (const user of ['ann', 'bob', 'carol']) codes.push((await gate.enter({ user, team: 'red' }, undefined)).refusal?.status)
    assert.deepEqual(codes, [undefined, undefined, 429])
    const left = async (key: string, limiter_: Parameters<typeof limiter.peek>[1]) => (await limiter.peek(key, limiter_, { cost: 0 })).remaining
    assert.equal(await left('user:{ann}', new FixedWindow(9, '1h')), 8)
    assert.equal(await left('user:{carol}', new FixedWindow(9, '1h')), 9)
    assert.equal(await left('held:{carol}', new TokenBucket(100, 1, '1h')), 100)
    assert.equal(await left('streams:{carol}', new Concurrent(3, '1m', { id: 'x' })), 3)
  })

  test('a node that hangs costs its own callers only', async (t) => {
    const rule: Rule<Asking> = { name: 'team', key: team, limit: new FixedWindow(1, '1h') }
    const options = { timeoutMs: 300, breaker: null } as const
    const { gate } = made(t, [rule], options)
    const both = made(t, [{ name: 'user', key: user, limit: new FixedWindow(9, '1h') }, rule], options)
    const all = Array.from({ length: 30 }, (_, i) => ({ user: `u${i}`, team: `t${i}` }))
    const refused = async (gate: Gate<Asking>) => {
      const passes = await Promise.all(all.map((asking) => gate.enter(asking, undefined)))
      return passes.filter(({ refusal }) => refusal?.status === 429).length
    }
    await both.limiter.ready()
    assert.deepEqual([await refused(gate), await refused(gate)], [0, 30])
    cluster.nodes[0]!.process.kill('SIGSTOP')
    try {
      const answered = await refused(gate)
      assert.ok(answered > 0 && answered < 30, String(answered))
      // A team is asked although the node of the user hangs.
      assert.equal(await refused(both.gate), answered)
    } finally {
      cluster.nodes[0]!.process.kill('SIGCONT')
      await pause(100)
    }
  })
})
