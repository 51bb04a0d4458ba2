/** Wrong options and wrong calls are errors at once. */

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { RateLimiter, type LimiterLike, type RateLimiterOptions, type RedisClient } from 'redis-ratelimit'
import { KINDS } from './kinds.js'
import { limiterOn } from './limiters.js'
import { startServer, type Server } from './servers.js'

describe('wrong options', () => {
  const redis = { status: 'ready', options: {}, call: () => undefined, duplicate: () => redis } as unknown as RedisClient
  const cases: [RateLimiterOptions, RegExp][] = [
    [{ timeout: 0 }, /^timeout must be at least 1 ms$/],
    [{ timeout: 'soon' }, /^timeout must be a whole number of ms/],
    [{ timeout: 0.1 }, /^timeout must be a whole number of ms/],
    [{ fail: 'ajar' as 'open' }, /^fail must be 'open' or 'closed', not 'ajar'$/],
    [{ breaker: { failures: 0 } }, /^breaker.failures must be/],
    [{ breaker: { cooldown: '0s' } }, /^breaker.cooldown must be/],
    [{ cache: { keys: 0 } }, /^cache.keys must be/],
    [{ cache: { longest: -1 } }, /^cache.longest must be/],
    [{ prefix: 5 as unknown as string }, /^prefix must be a text$/],
    [{ logger: {} as () => void }, /^logger must be a function/],
    [{ readFromReplicas: true }, /^readFromReplicas is for clients of a cluster$/],
    [{ timeOut: 5 } as RateLimiterOptions, /^there is no option 'timeOut'$/],
  ]
  for (const [options, message] of cases) {
    test(`${JSON.stringify(options)} is an error at once`, () => {
      assert.throws(() => new RateLimiter(redis, options), { name: 'ConfigurationError', message })
    })
  }

  test('no client is an error at once', () => {
    for (const none of [undefined, null, {}, 'redis://127.0.0.1']) {
      assert.throws(() => new RateLimiter(none as unknown as RedisClient), {
        name: 'ConfigurationError',
        message: /a client is needed/,
      })
    }
  })
})

describe('wrong calls are an error before they are sent', () => {
  let server: Server
  before(async () => (server = await startServer()))
  after(() => server?.stop())

  test('of all kinds', async (t) => {
    const { limiter } = await limiterOn(t, KINDS[0]!, server.port)
    const refusal = { name: 'ConfigurationError' }
    await assert.rejects(limiter.limit('k', 'api'), refusal)
    await assert.rejects(limiter.limit('k', undefined as unknown as LimiterLike), refusal)
    await assert.rejects(limiter.limit('k', '10/s', { cost: -1 }), refusal)
    await assert.rejects(limiter.limit('k', '10/s', { cost: 0.5 }), refusal)
    await assert.rejects(limiter.limit('k', '10/s', { wait: 0 }), refusal)
    await assert.rejects(limiter.ask('k', ''), refusal)
    await assert.rejects(limiter.refund('k', '10/s', -1), refusal)
    await assert.rejects(limiter.lease('k', { capacity: 0, ttl: '1s' }), refusal)
    await assert.rejects(limiter.lease('k', { capacity: 1, ttl: 'long' }), refusal)
    await assert.rejects(limiter.lease('k', { capacity: 1, ttl: '1s', cost: 0 }), refusal)
    assert.throws(() => limiter.budget('k', '10/s', { ttl: 0 }), refusal)
    assert.throws(() => limiter.budget('k', ''), refusal)
    await assert.rejects(limiter.budget('k', '10/s').hold(0), refusal)
    assert.equal((await server.cli('DBSIZE')).trim(), '0')
    assert.deepEqual([limiter.counters.asked, limiter.counters.unavailable], [0, 0])
  })
})
