/** What only JavaScript can get wrong: names, types and forms of options and arguments. The contract's cases show values. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { Concurrent, Limit, Rate, RateLimiter, type RedisClient } from 'redis-ratelimit'

const any = <T>(value: unknown) => value as T
const nobody = new Redis(1, { lazyConnect: true })

test('wrong options of a limiter are errors at once', () => {
  const wrong: [object | null, RegExp][] = [
    [{ timeoutMs: 0 }, /^timeoutMs must be an integer between 1 and /],
    [{ timeout: '0' }, /^timeout must be at least 1 ms$/],
    [{ timeout: 100 }, /^timeout must be a text such as '2s'; for a number there is timeoutMs$/],
    [{ timeout: null }, /^timeout must be .*, not null$/],
    [{ timeout: '1s', timeoutMs: 1000 }, /^there is both timeout and timeoutMs$/],
    [{ logger: {} }, /^logger must be a function/],
    [{ onError: 5 }, /^onError must be a function, not 5$/],
    [{ maxWaits: 0 }, /^maxWaits must be/],
    [{ readFromReplicas: true }, /^readFromReplicas is for clients of a cluster$/],
    [{ readFromReplicas: 'no' }, /^readFromReplicas must be true or false/],
    [{ timeOut: 5 }, /^there is no option 'timeOut'$/],
    [{ cache: true }, /^cache must be an object, not true$/],
    [{ cache: { key: 5 } }, /^there is no option 'cache.key'$/],
    [{ cache: { cacheAsk: 'yes' } }, /^cache.cacheAsk must be true or false, not 'yes'$/],
    [{ breaker: 'off' }, /^breaker must be an object, not 'off'$/],
    [{ breaker: { failure: 5 } }, /^there is no option 'breaker.failure'$/],
    [null, /^options must be an object, not null$/],
  ]
  for (const [options, message] of wrong) assert.throws(() => new RateLimiter(nobody, options as never), { name: 'ConfigurationError', message })
  for (const none of [undefined, null, {}, 'redis://127.0.0.1'])
    assert.throws(() => new RateLimiter(any<RedisClient>(none)), { name: 'ConfigurationError', message: /a client is needed/ })
})

test('wrong arguments of calls are errors before anything is sent, and are named', async (t) => {
  const limiter = new RateLimiter(nobody, { cache: false, breaker: false })
  t.after(() => limiter.close())
  assert.deepEqual([limiter.connected.settings.cache, limiter.connected.settings.breaker], [null, null])
  const budget = limiter.budget('k', '10/s')
  const wrong: [() => unknown, RegExp][] = [
    [() => limiter.limit('k', '10/s', any(null)), /^options must be an object, not null$/],
    [() => limiter.limit('k', '10/s', any({ csot: 2 })), /^there is no option 'csot'$/],
    [() => limiter.limit('k', '10/s', { signal: any('stop') }), /^signal must be an AbortSignal, not 'stop'$/],
    [() => limiter.limit('k', '10/s', { hold: any('h') }), /^hold must be an object, not 'h'$/],
    [() => limiter.limit('k', '10/s', { hold: any({ id: 'h', ttl: '1m', tll: 5 }) }), /^there is no option 'hold.tll'$/],
    [() => limiter.commands.gcra('k', 9, 10, '1s', { block: any(5) }), /^block needs a unit/],
    [() => limiter.ask('k', 'api', { full: any('no') }), /^full must be true or false/],
    [() => limiter.ask('k', 'api', { keys: any('k2') }), /^keys must be a list/],
    [() => limiter.peek('k', '10/s', any({ wait: 5 })), /^there is no option 'wait'$/],
    [() => limiter.lease('k', any(undefined)), /^options are missing: \{ capacity: …, ttl: … \}$/],
    [() => limiter.lease('k', any({ capacity: 1, ttl: '1s', tll: 1 })), /^there is no option 'tll'$/],
    [() => limiter.lease('k', { capacity: 1, ttl: '1s', renew: any(1) }), /^renew must be true or false/],
    [() => limiter.lease('k', { capacity: 1, ttl: '1s' }, any('work')), /^work must be a function, not 'work'$/],
    [() => limiter.lease('k', { capacity: 1, ttl: '1s', drops: [] }), /drops needs adapt/],
    [() => limiter.lease('k', { capacity: 1, ttl: '1s', adapt: any({ speed: 1 }) }), /there is no option 'adapt.speed'/],
    [() => limiter.local('k', '10/s', any(undefined)), /^options are missing: \{ processes: … \}$/],
    [() => limiter.budget('k', '10/s', any({ tll: 5 })), /^there is no option 'tll'$/],
    [() => budget.hold(1, any({ waits: 5 })), /^there is no option 'waits'$/],
    [() => budget.hold(1, any(() => 'done'), any({ tenant: 'ann' })), /^the options come before the work: hold\(estimate, options, work\)$/],
    [() => limiter.release('k', 'id', any(undefined)), /^options are missing: \{ within: … \}$/],
    [() => limiter.release('k', any(undefined), { within: '5s' }), /^id must be a text/],
    [() => limiter.settle(['k'], ['10/s'], 'id', { within: '5s', cost: NaN }), /^cost must be/],
    [() => limiter.settleAsk('k', 'api', 'id', NaN, { within: '5s' }), /^cost must be/],
    [() => limiter.ready(any({ limit: ['10/s'] })), /^there is no option 'limit'$/],
    [() => limiter.ready({ limits: any('10/s') }), /^limits must be/],
    [() => new Rate('10/s', any({ brust: 5 })), /^there is no option 'brust'$/],
    [() => new Limit('10/s', any({ only: 1 })), /^there is no option 'only'$/],
    [() => new Concurrent(1, '1m', any({ reserve: 1 })), /^there is no option 'reserve'$/],
  ]
  for (const [call, message] of wrong) await assert.rejects(async () => call(), { name: 'ConfigurationError', message }, String(call))
  assert.deepEqual([limiter.counters.asked, limiter.counters.unavailable], [0, 0])
})
