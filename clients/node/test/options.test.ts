/** Wrong options and wrong calls are errors at once. */

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Concurrent, Limit, Rate, RateLimiter } from 'redis-ratelimit'
import type { BreakerOptions, Duration, RateLimiterOptions, RedisClient, RefusalCacheOptions } from 'redis-ratelimit'
import { KINDS } from './kinds.js'
import { limiterOn } from './limiters.js'
import { startServer, type Server } from './servers.js'

describe('wrong options', () => {
  const redis = { status: 'ready', options: {}, call: () => undefined, duplicate: () => redis } as unknown as RedisClient
  const cases: [RateLimiterOptions, RegExp][] = [
    [{ timeoutMs: 0 }, /^timeoutMs must be an integer between 1 and /],
    [{ timeout: '0' }, /^timeout must be at least 1 ms$/],
    [{ timeoutMs: 0.1 }, /^timeoutMs must be an integer/],
    [{ timeout: 100 as unknown as string }, /^timeout must be a text such as '2s'; for a number there is timeoutMs$/],
    [{ timeout: '1s', timeoutMs: 1000 }, /^there is both timeout and timeoutMs$/],
    [{ breaker: { cooldown: '0s' } }, /^breaker.cooldown must be/],
    [{ cache: { longestMs: -1 } }, /^cache.longestMs must be/],
    [{ prefix: 5 as unknown as string }, /^prefix must be a text$/],
    [{ logger: {} as () => void }, /^logger must be a function/],
    [{ onError: 5 as never }, /^onError must be a function, not 5$/],
    [{ maxWaits: 0 }, /^maxWaits must be/],
    [{ readFromReplicas: true }, /^readFromReplicas is for clients of a cluster$/],
    [{ timeOut: 5 } as RateLimiterOptions, /^there is no option 'timeOut'$/],
    [{ timeout: null as unknown as string }, /^timeout must be .*, not null$/],
    [{ cache: 5 as unknown as null }, /^cache must be an object, not 5$/],
    [{ cache: true as unknown as null }, /^cache must be an object, not true$/],
    [{ cache: { key: 5 } as RefusalCacheOptions }, /^there is no option 'cache.key'$/],
    [{ cache: { cacheAsk: 'yes' as unknown as boolean } }, /^cache.cacheAsk must be true or false, not 'yes'$/],
    [{ breaker: 'off' as unknown as null }, /^breaker must be an object, not 'off'$/],
    [{ breaker: { failure: 5 } as BreakerOptions }, /^there is no option 'breaker.failure'$/],
    [{ readFromReplicas: 'no' as unknown as boolean }, /^readFromReplicas must be true or false/],
    [null as unknown as RateLimiterOptions, /^options must be an object, not null$/],
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

  test('false switches the cache and the breaker off', async (t) => {
    const { limiter } = await limiterOn(t, KINDS[0]!, server.port, { cache: false, breaker: false })
    assert.deepEqual([limiter.connected.settings.cache, limiter.connected.settings.breaker], [null, null])
    for (let i = 0; i < 3; i += 1) await limiter.limit('off', '1/m')
    assert.equal(limiter.counters.cached, 0)
    await server.cli('DEL', 'off')
  })

  test('and name the argument', async (t) => {
    const { limiter } = await limiterOn(t, KINDS[0]!, server.port)
    const any = <T>(value: unknown) => value as T
    const budget = limiter.budget('k', '10/s')
    const bare = any<Duration>
    const wrong: [() => unknown, RegExp][] = [
      [() => limiter.limit(any(undefined), '10/s'), /^a key must be a text that is not empty, not undefined$/],
      [() => limiter.limit('k', '10/s', any(null)), /^options must be an object, not null$/],
      [() => limiter.limit('k', '10/s', any({ csot: 2 })), /^there is no option 'csot'$/],
      [() => limiter.limit('k', '10/s', { cost: NaN }), /^cost must be an integer .*, not NaN$/],
      [() => limiter.limit('k', '10/s', { cost: any('3') }), /^cost must be an integer .*, not '3'$/],
      [() => limiter.limit('k', '10/s', { signal: any('stop') }), /^signal must be an AbortSignal, not 'stop'$/],
      [() => limiter.limit('k', '10/s', { hold: any('h') }), /^hold must be an object, not 'h'$/],
      [() => limiter.limit('k', '10/s', { hold: any({ id: 'h', ttl: '1m', tll: 5 }) }), /^there is no option 'hold.tll'$/],
      [() => limiter.limit('k', '10/s', { hold: { id: '', ttl: '1m' } }), /^hold.id must be a text/],
      [() => limiter.limit('k', '10/s', { wait: any(['5s']) }), /^wait must be a whole number with ms/],
      [() => limiter.commands.gcra('k', 9, 10, '1s', { block: bare(5) }), /^block needs a unit/],
      [() => limiter.limits(['k'], [any(null)]), /^a limiter is needed, .*, not null$/],
      [() => limiter.ask('k', 'api', { full: any('no') }), /^full must be true or false/],
      [() => limiter.ask('k', 'api', { keys: any('k2') }), /^keys must be a list/],
      [() => limiter.peek('k', '10/s', any({ wait: 5 })), /^there is no option 'wait'$/],
      [() => limiter.refund('k', '10/s', any('1')), /^options must be an object/],
      [() => limiter.lease('k', any(undefined)), /^options are missing: \{ capacity: …, ttl: … \}$/],
      [() => limiter.local('k', '10/s', any(undefined)), /^options are missing: \{ processes: … \}$/],
      [() => limiter.release('k', 'id', any(undefined)), /^options are missing: \{ within: … \}$/],
      [() => budget.hold(1, any(() => 'done'), any({ tenant: 'ann' })), /^the options come before the work: hold\(estimate, options, work\)$/],
      [() => limiter.lease('k', any({ capacity: 1, ttl: '1s', tll: 1 })), /^there is no option 'tll'$/],
      [() => limiter.lease('k', { capacity: 1, ttl: '1s', reserved: NaN }), /^reserved must be an integer/],
      [() => limiter.lease('k', { capacity: 1, ttl: '1s', renew: any(1) }), /^renew must be true or false/],
      [() => limiter.lease('k', { capacity: 1, ttl: '1s' }, any('work')), /^work must be a function, not 'work'$/],
      [() => limiter.budget('k', '10/s', any({ tll: 5 })), /^there is no option 'tll'$/],
      [() => budget.hold(1, any({ waits: 5 })), /^there is no option 'waits'$/],
      [() => limiter.release('k', any(undefined), { within: '5s' }), /^id must be a text/],
      [() => limiter.release('k', 'id', any({})), /^within must be/],
      [() => limiter.settle(['k'], ['10/s'], 'id', { within: '5s', cost: NaN }), /^cost must be/],
      [() => limiter.settleAsk('k', 'api', 'id', NaN, { within: '5s' }), /^cost must be/],
      [() => limiter.ready(any({ limit: ['10/s'] })), /^there is no option 'limit'$/],
      [() => limiter.ready({ limits: any('10/s') }), /^limits must be a list/],
      [() => limiter.commands.gcra('k', 9, 10, '1s', any({ csot: 3 })), /^there is no option 'csot'$/],
      [() => new Rate('10/s', any({ brust: 5 })), /^there is no option 'brust'$/],
      [() => new Limit('10/s', any({ only: 1 })), /^there is no option 'only'$/],
      [() => new Concurrent(1, '1m', any({ reserve: 1 })), /^there is no option 'reserve'$/],
    ]
    for (const [call, message] of wrong) {
      await assert.rejects(async () => call(), { name: 'ConfigurationError', message }, String(call))
    }
    assert.deepEqual([limiter.counters.asked, limiter.counters.unavailable], [0, 0])
  })
})
