/** The memory of refusals. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { Concurrent, FixedWindow, Limit, Penalty, Sketch, SlidingLog, TokenBucket } from 'redis-ratelimit'
import { Refusals } from '../dist/decide/refusals.js'
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
    const short = new FixedWindow(1, '700ms')
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
    const { limiter } = await limiterOn(t, kind, server.port, { cache: { keys: 10, longestMs: 60000 } })
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
    await twice(() => limiter.limit(e, hour, { wait: '10ms' }))
    await twice(() => limiter.lease(a, { capacity: 1, ttl: '1m' }).catch(() => undefined))
    assert.equal(limiter.counters.cached, 0)
  })

  test('forgets all calls with a key, whoever gives back to it', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port, { cache: {} })
    const [a, b] = [key(), key()]
    const both = () => limiter.limits([a, b], [hour])
    assert.deepEqual([(await both()).allowed, (await both()).allowed, (await both()).allowed], [true, false, false])
    assert.equal(limiter.counters.cached, 1)
    await limiter.commands.multiRefund([a, b], [hour])
    assert.equal((await both()).allowed, true)
    await both()
    await limiter.refund(a, hour)
    await limiter.refund(b, hour)
    assert.equal((await both()).allowed, true)
  })

  test('does not keep a refusal that arrives after something was given back', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port, { cache: {} })
    const own = key()
    await limiter.limit(own, hour)
    const { channel } = limiter.connected
    const send = channel.send.bind(channel)
    let arrives = () => undefined as void
    const isSlow = new Promise<void>((resolve) => (arrives = resolve))
    channel.send = async (call, options) => {
      const reply = await send(call, options)
      if (call.command === 'RL.FIXEDWINDOW') await isSlow
      return reply
    }
    const refused = limiter.limit(own, hour)
    await limiter.refund(own, hour)
    arrives()
    assert.equal((await refused).allowed, false)
    assert.equal((await limiter.limit(own, hour)).allowed, true)
  })

  test('keeps what will never be admitted', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port, { cache: {} })
    const own = key()
    for (let i = 0; i < 3; i += 1) assert.equal((await limiter.limit(own, hour, { cost: 2 })).retryAfter, null)
    assert.equal(limiter.counters.cached, 2)
  })

  test('counts each item of a sketch for itself', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port, { cache: { keys: 100 } })
    const own = key()
    const items = Array.from({ length: 20 }, (_, i) => new Sketch(`10.0.0.${i}`, 0, 1, '1h'))
    for (let round = 0; round < 3; round += 1) await Promise.all(items.map((item) => limiter.limit(own, item)))
    assert.equal(limiter.counters.cached, 20)
  })

  const at = (name: string, call = 'x') => ({ keys: [name], group: name, call })

  test('is bounded', () => {
    const refusals = new Refusals(2, 100)
    refusals.add(at('a'), 'a is refused', 50, 0)
    refusals.add(at('b'), 'b is refused', 500, 0)
    assert.deepEqual(refusals.find(at('a'), 49), { reply: 'a is refused', age: 49 })
    refusals.add(at('c'), 'c is refused', 500, 49)
    assert.deepEqual([refusals.size, refusals.find(at('b'), 50)], [2, undefined], 'b was used longest ago')
    assert.equal(refusals.find(at('a'), 50), undefined, 'it may be admitted')
    assert.equal(refusals.find(at('c', 'y'), 50), undefined)
    assert.notEqual(refusals.find(at('c'), 148), undefined)
    assert.deepEqual([refusals.find(at('c'), 149), refusals.size], [undefined, 0], 'the longest time has passed')
    for (let call = 0; call < 100; call += 1) refusals.add(at('d', String(call)), 'd', 50, 0)
    refusals.add(at('d'), 'never', null, 0)
    assert.deepEqual([refusals.find(at('d'), 99)?.reply, refusals.find(at('d'), 100)], ['never', undefined])
    refusals.forget(['d'])
    assert.equal(refusals.size, 0)
  })

  test('is not for what was asked before something was given back', () => {
    const refusals = new Refusals(2, 100)
    const both = { keys: ['d', 'e'], group: 'd e', call: 'x' }
    const asked = refusals.generation
    refusals.forget(['e'])
    refusals.add(both, 'asked before', 50, 0, asked)
    refusals.add(at('f'), 'another key', 50, 0, asked)
    assert.deepEqual([refusals.find(both, 1), refusals.find(at('f'), 1)?.reply], [undefined, 'another key'])
    refusals.add(both, 'asked after', 50, 0, refusals.generation)
    assert.equal(refusals.find(both, 1)?.reply, 'asked after')
    // That 'e' was forgotten is remembered for two keys only. What was asked before is not kept for any key then.
    for (const key of ['g', 'h']) refusals.forget([key])
    refusals.add(at('e'), 'asked before', 50, 0, asked)
    refusals.add(at('i'), 'asked before', 50, 0, asked)
    assert.deepEqual([refusals.find(at('e'), 1), refusals.find(at('i'), 1)], [undefined, undefined])
  })
})
