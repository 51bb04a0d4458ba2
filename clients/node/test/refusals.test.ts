/** The memory of refusals. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { Concurrent, FixedWindow, Limit, Penalty, SlidingLog, TokenBucket } from 'redis-ratelimit'
import { Refusals } from '../dist/esm/refusals.js'
import { KINDS } from './kinds.js'
import { limiterOn } from './limiters.js'
import { startServer, until, type Server } from './servers.js'

const key = () => `user:${randomUUID()}`
const hour = new FixedWindow(1, '1h')
const kind = KINDS[0]!

describe('a memory of refusals', () => {
  let server: Server
  before(async () => {
    server = await startServer()
    await server.cli('RL.POLICY', 'SET', 'once', 'LIMIT', 'FIXEDWINDOW', '1', '1h')
  })
  after(() => server?.stop())
  const calls = async () => Number(/total_commands_processed:(\d+)/.exec(await server.cli('INFO', 'stats'))?.[1])
  /** How many commands the limiter sends for some work. */
  const sent = async (work: () => Promise<unknown>) => {
    const [first, second] = [await calls(), await calls()]
    await work()
    return (await calls()) - second - (second - first)
  }

  test('answers without the server until the time has come', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port, { cache: {} })
    const own = key()
    const short = new FixedWindow(1, 700)
    await limiter.limit(own, short)
    const refused = await limiter.limit(own, short)
    const count = await sent(async () => {
      const again = await limiter.limit(own, short)
      assert.deepEqual([again.allowed, again.answered, again.limit, again.limiter], [false, true, 1, short])
      assert(again.retryAfter! <= refused.retryAfter! && again.headers()['Retry-After'] === '1')
    })
    assert.deepEqual([count, limiter.counters.cached, limiter.counters.refused, limiter.counters.asked], [0, 1, 2, 3])
    await until(async () => (await limiter.limit(own, short)).allowed, 'an admission')
  })

  test('knows calls apart by key, limiter and cost', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port, { cache: { keys: 10, longest: '1m' } })
    const own = key()
    const ten = new TokenBucket(10, 1, '1h')
    await limiter.limit(own, ten, { cost: 8 })
    assert.equal((await limiter.limit(own, ten, { cost: 3 })).allowed, false)
    assert.equal((await limiter.limit(own, ten, { cost: 2 })).allowed, true)
    assert.equal((await limiter.limit(key(), ten, { cost: 3 })).allowed, true)
    assert.equal(limiter.counters.cached, 0)
    assert.equal((await limiter.limit(own, ten, { cost: 3 })).allowed, false)
    assert.equal(limiter.counters.cached, 1)
  })

  test('forgets a key to which something was given back', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port, { cache: {} })
    const own = key()
    await limiter.limit(own, hour)
    await limiter.limit(own, hour)
    await limiter.refund(own, hour)
    assert.equal((await limiter.limit(own, hour)).allowed, true)
    const budget = new TokenBucket(10, 1, '1d')
    const other = key()
    await limiter.budget(other, budget).hold(10, async (hold) => {
      assert.equal((await limiter.limit(other, budget)).allowed, false)
      hold.settle(1)
    })
    assert.equal((await limiter.limit(other, budget)).allowed, true)
  })

  test('is for several limits, and for policies if one says so', async (t) => {
    const plain = await limiterOn(t, kind, server.port, { cache: {} })
    const asks = await limiterOn(t, kind, server.port, { cache: { cacheAsk: true } })
    const own = key()
    const cached = async ({ limiter }: typeof plain, call: () => Promise<unknown>) => {
      const before = limiter.counters.cached
      for (let i = 0; i < 3; i += 1) await call()
      return limiter.counters.cached - before
    }
    assert.equal(await cached(plain, () => plain.limiter.limits([own], [hour])), 1)
    assert.equal(await cached(plain, () => plain.limiter.ask(own, 'once')), 0)
    assert.equal(await cached(asks, () => asks.limiter.ask(own, 'once')), 2)
    const leased = () => asks.limiter.ask(own, 'once', { leaseId: 'a' })
    assert.equal(await cached(asks, leased), 0)
  })

  test('is not for leases, penalties, logs of refusals, looks, holds and waits', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port, { cache: {} })
    const twice = async (call: () => Promise<unknown>) => {
      for (let i = 0; i < 3; i += 1) await call()
    }
    const [a, b, c, d, e] = [key(), key(), key(), key(), key()]
    await limiter.limit(a, new Concurrent(1, '1m', { id: 'other' }))
    await twice(() => limiter.limit(a, new Concurrent(1, '1m', { id: 'me' })))
    await twice(() => limiter.limit(b, new Penalty(1, '1m', '1m')))
    await twice(() => limiter.limit(c, new SlidingLog(1, '1m', { countrefused: true })))
    await twice(() => limiter.limits([d], [hour, new Limit(new Penalty(9, '1m', '1m'))]))
    await twice(() => limiter.limit(e, hour, { hold: { id: randomUUID(), ttl: '1m' } }))
    await twice(() => limiter.limit(e, hour, { wait: 10 }))
    await twice(() => limiter.limit(e, hour, { cost: 2 }))
    await twice(() => limiter.lease(a, { capacity: 1, ttl: '1m' }).catch(() => undefined))
    assert.equal(limiter.counters.cached, 0)
  })

  test('is bounded', () => {
    const refusals = new Refusals<string>(2, 100)
    refusals.add('a', 'x', 'a is refused', 50, 0)
    refusals.add('b', 'x', 'b is refused', 500, 0)
    assert.deepEqual(refusals.find('a', 'x', 49), { decision: 'a is refused', age: 49 })
    refusals.add('c', 'x', 'c is refused', 500, 49)
    assert.deepEqual([refusals.size, refusals.find('b', 'x', 50)], [2, undefined], 'b was used longest ago')
    assert.equal(refusals.find('a', 'x', 50), undefined, 'it may be admitted')
    assert.equal(refusals.find('c', 'y', 50), undefined)
    assert.notEqual(refusals.find('c', 'x', 148), undefined)
    assert.deepEqual([refusals.find('c', 'x', 149), refusals.size], [undefined, 0], 'the longest time has passed')
    for (let call = 0; call < 100; call += 1) refusals.add('d', String(call), 'd', 50, 0)
    refusals.add('d', 'x', 'd', 50, 0)
    refusals.forget('d', 5)
    assert.equal(refusals.size, 0)
    refusals.add('d', 'x', 'asked before something was given back', 50, 6, 4)
    assert.equal(refusals.find('d', 'x', 7), undefined)
    refusals.add('d', 'x', 'asked after it', 50, 8, 6)
    assert.notEqual(refusals.find('d', 'x', 9), undefined)
    for (const key of ['e', 'f', 'g']) refusals.forget(key, 10)
  })
})
