/** A cluster of three nodes, with each client: every call goes to the node of its key at once. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { Cluster } from 'ioredis'
import { Commands, Concurrent, FixedWindow, Limit, RateLimiter, SlidingLog, TokenBucket } from 'redis-ratelimit'
import { Gate } from 'redis-ratelimit/gate'
import { slotOf } from '../dist/wire/slots.js'
import { KINDS, type Kind, type MakeOptions } from './kinds.js'
import { limiterOnCluster, onCluster } from './limiters.js'
import { until, type Server } from './servers.js'

const hour = new FixedWindow(1000, '1h')
const bucket = new TokenBucket(1000, 1, '1d')

onCluster('on a cluster', (nodes) => {
  const sum = async (section: string, pattern: RegExp) => {
    const texts = await Promise.all(nodes.map((node) => node.cli('INFO', section)))
    return texts.reduce((total, text) => total + Number(pattern.exec(text)?.[1] ?? 0), 0)
  }
  /** Calls that a client sent to the wrong node. */
  const moved = () => sum('errorstats', /errorstat_MOVED:count=(\d+)/)
  const waiting = () => sum('ratelimit', /ratelimit_waiting:(\d+)/)
  const owns = async (node: Server, key: string) => {
    const [, ranges = ''] = /myself.* connected (.*)/.exec(await node.cli('CLUSTER', 'NODES')) ?? []
    return ranges.split(' ').some((range) => {
      const [from, to = from] = range.split('-').map(Number)
      return slotOf(key) >= from! && slotOf(key) <= to!
    })
  }
  /** A key on each node. */
  const keys = async () => {
    const found: string[] = []
    for (const node of nodes) {
      let key
      do key = `user:${randomUUID()}`
      while (!(await owns(node, key)))
      found.push(key)
    }
    return found
  }

  /** Each command with a key. */
  async function everyCommand(commands: Commands, key: string): Promise<void> {
    const k = (name: string) => `{${key}}${name}`
    await commands.tokenBucket(k('tb'), 5, 1, '1m')
    await commands.leakyBucket(k('lb'), 5, 1, '1m')
    await commands.gcra(k('g'), 9, 10, '1s')
    await commands.fixedWindow(k('f'), 3, '1m')
    await commands.calendar(k('c'), 3, 'DAY')
    await commands.uniform(k('u'), '2s')
    await commands.slidingWindow(k('sw'), 3, '1m')
    await commands.slidingLog(k('sl'), 3, '1m')
    await commands.smooth(k('sm'), 3, '1m')
    await commands.penalty(k('p'), 3, '1m', '1m')
    await commands.sketch(k('sk'), 'item', 9, 10, '1s', { width: 1024 })
    await commands.shed(k('sh'), 0.5)
    await commands.throttle(k('t'), 9, 10, 60)
    await commands.clThrottle(k('t'), 9, 10, 60)
    await commands.concurrent(k('l'), 3, '1m', 'a')
    await commands.renew(k('l'), '1m', 'a')
    await commands.release(k('l'), 'a')
    await commands.multiRelease([k('l'), k('m')], 'a')
    await commands.multi([k('1'), k('2')], [hour, new Limit(bucket, { on: 2 })], { cost: 5, hold: { id: 'h', ttl: '1m' } })
    await commands.multiPeek([k('1'), k('2')], [hour])
    await commands.multiSettle([k('1'), k('2')], 'h', [hour], { cost: 1 })
    await commands.multiRefund([k('1')], [hour])
    await commands.ask(k('a'), 'api', { cost: 5, hold: { id: 'h', ttl: '1m' }, moreKeys: [k('b')] })
    await commands.askPeek(k('a'), 'api', { moreKeys: [k('b')] })
    await commands.askSettle(k('a'), 'api', 'h', 1)
    await commands.askRefund(k('a'), 'api', { cost: 1 })
    await commands.peek(k('g'), '10/s')
    await commands.refund(k('g'), '10/s')
    await commands.settle(k('1'), 'h', hour, 1)
    await commands.info(k('g'))
    await commands.xadd(k('x'), 9, '*', { a: 1 })
    await commands.lpush(k('q'), 9, ['a'])
    await commands.rpush(k('q'), 9, ['a'])
    await commands.apply([[k('z'), 'no payload']]).catch((error: Error) => assert(!/MOVED/.test(error.message), error.message))
  }

  async function rawCommands(kind: Kind, options?: MakeOptions) {
    const made = await kind.cluster(nodes[0]!.port, options)
    return { ...made, commands: new Commands(made.redis, 'p:') }
  }

  test('rules of a gate for one caller are one call, and none goes to a wrong node', async (t) => {
    const redis = new Cluster([{ host: '127.0.0.1', port: nodes[0]!.port }], { keyPrefix: 'app:' })
    const limiter = new RateLimiter(redis, { prefix: 'web:', timeoutMs: 3000 })
    t.after(async () => {
      redis.disconnect()
      await limiter.close()
    })
    const user = (request: { user: string }) => request.user
    const rules = [
      { name: 'rate', key: user, limit: new SlidingLog(9, '1m') },
      { name: 'tokens', key: user, limit: new TokenBucket(100, 1, '1h'), estimate: 60 },
      { name: 'streams', key: user, limit: new Concurrent(3, '1m') },
    ]
    const gate = new Gate({ limiter, rules })
    const users = Array.from({ length: 50 }, (_, i) => `user ${i}`)
    await (await gate.enter({ user: 'first' })).end()
    const before = await moved()
    for (const pass of await Promise.all(users.map((user) => gate.enter({ user })))) {
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

  for (const kind of KINDS) {
    describe(kind.name, () => {
      test('no call of any command is redirected', async () => {
        const { commands, close } = await rawCommands(kind)
        await commands.policySet('api', [new TokenBucket(1000, 1, '1d')])
        for (const key of await keys()) await commands.gcra(key, 9, 10, '1s')
        const before = await moved()
        for (const key of [...(await keys()), ...(await keys())]) await everyCommand(commands, key)
        assert.equal((await moved()) - before, 0)
        close()
      })

      test("no call on a limiter's connections is redirected", async (t) => {
        const { limiter } = await limiterOnCluster(t, kind, nodes[0]!.port)
        await limiter.commands.policySet('api', [new TokenBucket(1000, 1, '1d')])
        for (const key of await keys()) await limiter.limit(key, hour)
        const before = await moved()
        for (const key of await keys()) {
          await everyCommand(limiter.commands, key)
          assert.equal((await limiter.limit(key, hour)).answered, true)
          assert.equal((await limiter.limits([key], [hour])).answered, true)
          assert.equal((await limiter.ask(`${key}:ask`, 'api')).answered, true)
          assert.equal((await limiter.peek(key, hour)).answered, true)
          assert.equal(await limiter.lease(`${key}:lease`, { capacity: 1, ttl: '30s' }, ({ held }) => held), true)
          assert.equal(await limiter.lease(`${key}:lease`, { capacity: 1, ttl: '30s', wait: '5s' }, ({ held }) => held), true)
          await limiter.budget(`${key}:hold`, bucket).hold(50, (hold) => hold.settle(5))
          await limiter.budget(`${key}:policy`, 'api').hold(50, (hold) => hold.settle(5))
        }
        assert.deepEqual([(await moved()) - before, limiter.counters.unavailable], [0, 0])
      })

      test('300 calls at once all succeed, with automatic pipelines too', async (t) => {
        const { limiter } = await limiterOnCluster(t, kind, nodes[0]!.port, {}, { autoPipelining: true })
        const { commands, close } = await rawCommands(kind, { autoPipelining: true })
        for (const key of await keys()) await Promise.all([limiter.limit(key, hour), commands.gcra(key, 9, 10, '1s')])
        const before = await moved()
        const all = Array.from({ length: 300 }, (_, i) => `user:${i}:${randomUUID()}`)
        const decisions = await Promise.all(all.map((key) => limiter.limit(key, hour)))
        assert(decisions.every(({ answered, allowed, remaining }) => answered && allowed && remaining === 999))
        const raw = await Promise.all(all.map((key) => commands.multi([key], [hour])))
        assert(raw.every(({ allowed, remaining }) => allowed && remaining === 999))
        assert.equal((await moved()) - before, 0)
        close()
      })

      if (kind.hasKeyPrefix) {
        test('the keyPrefix of the client stands before each key once', async (t) => {
          const client = { keyPrefix: 'app:', autoPipelining: true }
          const { limiter } = await limiterOnCluster(t, kind, nodes[0]!.port, { prefix: 'p:' }, client)
          const { commands, close } = await rawCommands(kind, client)
          const before = await moved()
          for (const key of await keys()) {
            await limiter.limit(key, hour)
            await commands.multi([key], [hour])
            await limiter.lease(`${key}:lease`, { capacity: 1, ttl: '30s', wait: '5s' }, () => undefined)
            const found = await Promise.all(nodes.map((node) => node.cli('KEYS', `*${key}`)))
            assert.equal(found.join('').trim(), `app:p:${key}`)
          }
          assert.equal((await moved()) - before, 0)
          close()
        })
      }

      test('policies are changed on all nodes, and other calls without a key go to one', async () => {
        const { commands, close } = await rawCommands(kind)
        const name = `p${randomUUID()}`
        assert.equal(await commands.policySet(name, ['10/s']), 1)
        const on = async () =>
          (await Promise.all(nodes.map((node) => node.cli('RL.POLICY', 'GET', name)))).filter((text) => text.includes('GCRA'))
            .length
        assert.equal(await on(), 3)
        assert.equal(Object.keys(await commands.policyList()).includes(name), true)
        assert.equal(await commands.policyDel(name), true)
        assert.equal(await on(), 0)
        assert((await commands.help()).length > 10)
        assert(Array.isArray(await commands.top()))
        close()
      })

      test('a call that waits is at the node of its key, and leaves it', async (t) => {
        const { limiter } = await limiterOnCluster(t, kind, nodes[0]!.port)
        for (const key of await keys()) {
          const first = await limiter.lease(key, { capacity: 1, ttl: '30s' })
          const control = new AbortController()
          const waits = limiter.lease(key, { capacity: 1, ttl: '30s', wait: '50s', signal: control.signal })
          await until(async () => (await waiting()) === 1, 'a line')
          control.abort()
          await assert.rejects(waits, { name: 'AbortError' })
          await until(async () => (await waiting()) === 0, 'an empty line')
          const next = limiter.lease(key, { capacity: 1, ttl: '30s', wait: '50s' }, ({ held }) => held)
          await until(async () => (await waiting()) === 1, 'a line')
          await first.release()
          assert.equal(await next, true)
        }
      })

      if (kind.isIoredis) {
        test("a raw command that waits outlasts the application's time-out", async () => {
          const { commands, close } = await rawCommands(kind, { commandTimeout: 500 })
          const key = `user:${randomUUID()}`
          assert.equal((await commands.gcra(key, 0, 1, '1500ms')).allowed, true)
          assert.equal((await commands.gcra(key, 0, 1, '1500ms', { block: '20s' })).allowed, true)
          close()
        })
      }

      test('a call that waits finds the node to which its slot has moved', async (t) => {
        const { limiter, lines } = await limiterOnCluster(t, kind, nodes[0]!.port)
        const [first = ''] = await keys()
        assert.equal((await limiter.limit(first, hour)).answered, true)
        const key = `user:${randomUUID()}`
        const owner = (await Promise.all(nodes.map((node) => owns(node, key)))).indexOf(true)
        const next = nodes[(owner + 1) % 3]!
        const id = (await next.cli('CLUSTER', 'MYID')).trim()
        // Else what the old owner has sent before may give the slot back to it.
        await next.cli('CLUSTER', 'BUMPEPOCH')
        for (const node of [next, ...nodes]) await node.cli('CLUSTER', 'SETSLOT', String(slotOf(key)), 'NODE', id)
        assert.equal(await limiter.lease(key, { capacity: 1, ttl: '30s', wait: '5s' }, ({ held }) => held), true, lines.join())
        assert.equal((await limiter.limit(`{${key}}`, hour)).answered, true)
      })
    })
  }
})
