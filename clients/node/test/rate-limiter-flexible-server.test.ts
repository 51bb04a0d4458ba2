import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Redis } from 'ioredis'
import {
  BurstyRateLimiter, RateLimiterQueue, RateLimiterRedis, RateLimiterRes, RateLimiterUnion, RLWrapperBlackAndWhite,
} from 'rate-limiter-flexible'
import { RateLimiterRatelimit } from 'redis-ratelimit/rate-limiter-flexible'
import { counted, quiet } from './rate-limiter-flexible.clients.js'
import { startServer, type Server } from './servers.js'

const PREFIX = { keyPrefix: 'app:' }

describe('the backend on one server', () => {
  let server: Server
  let redis: Redis
  let made = 0
  before(async () => {
    server = await startServer()
    redis = quiet(new Redis(server.port, PREFIX))
  })
  after(async () => {
    redis?.disconnect()
    await server?.stop()
  })
  const limiter = (options = {}) =>
    new RateLimiterRatelimit({ storeClient: redis, keyPrefix: `l${made++}`, points: 5, duration: 60, ...options })

  test('a plain consume is one command of the module', async () => {
    const before = await counted(server, 'commandstats', 'evalsha')
    const ours = limiter()
    for (let i = 0; i < 5; i++) await ours.consume('k')
    assert.equal(await server.cli('TYPE', `app:${ours.getKey('k')}`), 'ratelimit\n')
    assert.equal(await counted(server, 'commandstats', 'evalsha'), before)
  })

  test('limiter and fallback use the same key, with both prefixes', async () => {
    const ours = limiter()
    const names = async () => (await server.cli('KEYS', `*${ours.keyPrefix}*`)).trim().split('\n')
    await ours.consume('k')
    await ours.block('k', 60)
    await assert.rejects(ours.consume('k'), RateLimiterRes)
    assert.deepEqual(await names(), [`app:${ours.getKey('k')}`])
    assert.equal(await ours.delete('k'), true)
    assert.deepEqual(await names(), [''])
  })

  test('a limiter that knows of a block does not make the server reply errors', async () => {
    const [first, second] = [limiter({ keyPrefix: 'shared' }), limiter({ keyPrefix: 'shared' })]
    await first.block('k', 60)
    const before = await counted(server, 'errorstats', 'WRONGTYPE')
    for (let i = 0; i < 10; i++) await assert.rejects(first.consume('k'), RateLimiterRes)
    assert.equal(await counted(server, 'errorstats', 'WRONGTYPE'), before)
    // The second one learns it from one error.
    for (let i = 0; i < 10; i++) await assert.rejects(second.consume('k'), RateLimiterRes)
    await second.get('k')
    assert.equal(await counted(server, 'errorstats', 'WRONGTYPE'), before + 1)
  })

  test('a key that somebody else deleted or opened is found as it is', async () => {
    const [first, second] = [limiter({ keyPrefix: 'shared2' }), limiter({ keyPrefix: 'shared2' })]
    await first.block('k', 60)
    await second.delete('k')
    await second.consume('k', 2)
    assert.equal((await first.get('k'))?.consumedPoints, 2)
    assert.equal((await first.consume('k')).consumedPoints, 3)
    assert.equal((await second.consume('k')).consumedPoints, 4)
    assert.equal(await server.cli('TYPE', `app:${first.getKey('k')}`), 'ratelimit\n')
    await first.block('k', 60)
    await second.delete('k')
    assert.equal(await first.get('k'), null)
    await first.consume('k')
    assert.equal(await server.cli('TYPE', `app:${first.getKey('k')}`), 'ratelimit\n')
  })

  test('a window becomes fast again when it opens next', async () => {
    const ours = limiter({ duration: 1 })
    await ours.reward('k')
    assert.equal(await server.cli('TYPE', `app:${ours.getKey('k')}`), 'string\n')
    await new Promise((resolve) => setTimeout(resolve, 1100))
    await ours.consume('k')
    assert.equal(await server.cli('TYPE', `app:${ours.getKey('k')}`), 'ratelimit\n')
  })

  test('what RateLimiterRedis left in the server counts on', async () => {
    const ours = limiter()
    const theirs = new RateLimiterRedis({ storeClient: redis, keyPrefix: ours.keyPrefix, points: 5, duration: 600 })
    await theirs.consume('k', 4)
    assert.equal((await ours.get('k'))?.consumedPoints, 4)
    const { consumedPoints, msBeforeNext } = await ours.consume('k')
    assert.equal(consumedPoints, 5)
    assert.ok(msBeforeNext > 500_000)
    await assert.rejects(ours.consume('k'), RateLimiterRes)
  })

  test('what other commands of the module store stays beside the window, and what needs a string is an error', async () => {
    const ours = limiter()
    const key = `app:${ours.getKey('k')}`
    for (const limits of [['GCRA', 9, 10, '1h'], ['TOKENBUCKET', 9, 1, '1h', 'LIMIT', 'GCRA', 9, 10, '1h']]) {
      await redis.call('RL.MULTI', 1, key, 'LIMIT', ...limits)
      assert.equal((await ours.consume('k')).consumedPoints, 1)
      assert.equal((await ours.get('k'))?.consumedPoints, 1)
      const before = await redis.call('RL.INFO', key)
      for (const call of [() => ours.reward('k'), () => ours.consume('k', 0)]) await assert.rejects(call, /WRONGTYPE/)
      assert.deepEqual(await redis.call('RL.INFO', key), before)
      assert.equal(((await redis.call('RL.PEEK', key, 'GCRA', 9, 10, '1h', 'COST', 0)) as number[])[2], 9)
      await ours.block('k', 60)
      assert.equal(await server.cli('TYPE', key), 'string\n')
      await ours.delete('k')
    }
  })

  test('exactly the points are admitted of 300 parallel calls', async () => {
    const piped = quiet(new Redis(server.port, { ...PREFIX, enableAutoPipelining: true }))
    const ours = limiter({ storeClient: piped, points: 100 })
    const told = await Promise.allSettled(Array.from({ length: 300 }, () => ours.consume('k')))
    assert.equal(told.filter(({ status }) => status === 'fulfilled').length, 100)
    assert.equal((await ours.get('k'))?.consumedPoints, 300)
    piped.disconnect()
  })

  test('no point is lost while windows and strings take turns', async () => {
    const ours = limiter({ points: 1e6 })
    const calls = Array.from({ length: 200 }, (_, i) => [
      ours.consume('k', 3),
      i % 3 ? ours.reward('k', 2) : ours.consume('k', 1, { customDuration: 30 }),
      limiter({ keyPrefix: ours.keyPrefix, points: 1e6 }).penalty('k', 1),
    ])
    await Promise.all(calls.flat())
    assert.equal((await ours.get('k'))?.consumedPoints, 200 * 4 - 133 * 2 + 67)
  })

  test('scripts that the server forgot are sent again', async () => {
    const ours = limiter()
    await ours.reward('k')
    await server.cli('SCRIPT', 'FLUSH')
    assert.equal((await ours.reward('k')).consumedPoints, -2)
  })

  test('two limiters of one client have each its own script', async () => {
    const replies = (n: number) => ({ customIncrTtlLuaScript: `return {${n}, 1000}` })
    const [first, second] = [limiter(replies(1)), limiter(replies(2))]
    assert.equal((await first.consume('k')).consumedPoints, 1)
    assert.equal((await second.consume('k')).consumedPoints, 2)
    const shebang = limiter({ customIncrTtlLuaScript: '#!lua flags=allow-stale\nreturn {3, 1000}' })
    assert.equal((await shebang.consume('k')).consumedPoints, 3)
  })

  test('the wrappers of the library take it', async () => {
    const union = new RateLimiterUnion(limiter({ points: 2 }), limiter({ points: 9 }))
    await union.consume('k', 2)
    await assert.rejects(union.consume('k'))
    const white = new RLWrapperBlackAndWhite({ limiter: limiter({ points: 0 }), whiteList: ['k'] })
    await white.consume('k')
    const bursty = new BurstyRateLimiter(limiter({ points: 1 }), limiter({ points: 1 }))
    await bursty.consume('k')
    await bursty.consume('k')
    await assert.rejects(bursty.consume('k'))
    assert.equal(await new RateLimiterQueue(limiter()).removeTokens(2, 'k'), 3)
  })

  test('wrong options are exceptions, with the words of RateLimiterRedis', () => {
    for (const options of [
      { points: undefined }, { points: NaN }, { duration: -1 }, { duration: '5' }, { storeClient: undefined }, { keyPrefix: 5 },
      { points: 5, inMemoryBlockOnConsumed: 4 }, { points: 5, blockOnConsumed: 4 }, { inMemoryBlockDuration: 4 }, { insuranceLimiter: {} },
    ]) {
      const all = { storeClient: redis, points: 5, duration: 60, ...options } as never
      let theirs: unknown
      try {
        new RateLimiterRedis(all)
      } catch (error) {
        theirs = error
      }
      assert.ok(theirs instanceof Error, JSON.stringify(options))
      assert.throws(() => new RateLimiterRatelimit(all), { message: theirs.message })
    }
    assert.throws(() => limiter({ useRedis3AndLowerPackage: true }), /not supported/)
  })
})
