/** What only JavaScript can get wrong: names, types and forms of options and arguments. The contract's cases show values. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { Concurrent, Gcra, Limit, Rate, RateLimiter, Share, type RedisClient } from 'redis-ratelimit'

const any = <T>(value: unknown) => value as T
const nobody = new Redis(1, { lazyConnect: true })

test('wrong options of a limiter are errors at once', () => {
  const wrong: [object | null, RegExp][] = [
    [{ timeoutMs: 0 }, /^timeoutMs must be an integer between 1 and /],
    [{ timeout: '0' }, /^timeout must be at least 1 ms, not '0'$/],
    [{ timeout: 100 }, /^timeout must be a text such as '2s'; for a number there is timeoutMs$/],
    [{ timeout: null }, /^timeout must be .*, not null$/],
    [{ timeout: '1s', timeoutMs: 1000 }, /^there is both timeout and timeoutMs$/],
    [{ logger: {} }, /^logger must be a function/],
    [{ onError: 5 }, /^onError must be a function, not 5$/],
    [{ maxWaits: 0 }, /^maxWaits must be/],
    [{ readFromReplicas: true }, /^readFromReplicas is for clients of a cluster$/],
    [{ readFromReplicas: 'no' }, /^readFromReplicas must be true or false/],
    [{ timeOut: 5 }, /^there is no option 'timeOut'; options are /],
    [{ cache: true }, /^cache must be an object such as \{ keys: … \}, not true$/],
    [{ cache: { key: 5 } }, /^there is no option 'cache.key'; options are /],
    [{ cache: { cacheAsk: 'yes' } }, /^cache.cacheAsk must be true or false, not 'yes'$/],
    [{ breaker: 'off' }, /^breaker must be an object such as \{ failures: … \}, not 'off'$/],
    [{ breaker: { failure: 5 } }, /^there is no option 'breaker.failure'; options are /],
    [null, /^options must be an object such as \{ prefix: … \}, not null$/],
  ]
  for (const [options, message] of wrong) assert.throws(() => new RateLimiter(nobody, options as never), { name: 'ConfigurationError', message })
  for (const none of [undefined, null, {}, 'redis://:secret@127.0.0.1'])
    assert.throws(() => new RateLimiter(any<RedisClient>(none)), { name: 'ConfigurationError', message: /^a client is needed((?!secret).)*$/ })
})

test('wrong arguments of calls are errors before anything is sent, and are named', async (t) => {
  const limiter = new RateLimiter(nobody, { cache: false, breaker: false })
  t.after(() => limiter.close())
  assert.deepEqual([limiter.connected.settings.cache, limiter.connected.settings.breaker], [null, null])
  const budget = limiter.budget('k', '10/s')
  const wrong: [() => unknown, RegExp][] = [
    [() => limiter.limit('k', '10/s', any(5)), /^options must be an object such as \{ cost: … \}, not 5$/],
    [() => limiter.limit('k', '10/s', any({ csot: 2 })), /^there is no option 'csot'; options are cost, wait, /],
    [() => limiter.limit('k', '10/s', { reserve: any(5) }), /^reserve needs a unit/],
    [() => limiter.limit('k', '10/s', any('redis://:secret@h')), /^options must be an object such as \{ cost: … \}, not a URL$/],
    [() => limiter.limit('k', '10/s', { signal: any('stop') }), /^signal must be an AbortSignal, not 'stop'$/],
    [() => limiter.limit('k', '10/s', { hold: any('h') }), /^hold must be an object such as \{ id: …, ttl: … \}, not 'h'$/],
    [() => limiter.limit('k', '10/s', { hold: any({ id: 'h' }) }), /^hold.ttl is missing: \{ id: …, ttl: … \}$/],
    [() => limiter.commands.multi(any('k'), ['10/s']), /^keys must be a list, not 'k'$/],
    [() => limiter.commands.multi(['k'], any('10/s')), /^limits must be a list, not '10\/s'$/],
    [() => limiter.limit('k', '10/s', { hold: any({ id: 'h', ttl: '1m', tll: 5 }) }), /^there is no option 'hold.tll'; options are /],
    [() => limiter.commands.gcra('k', 9, 10, '1s', { block: any(5) }), /^block needs a unit/],
    [() => limiter.ask('k', 'api', { full: any('no') }), /^full must be true or false/],
    [() => limiter.ask('k', 'api', { keys: any('k2') }), /^keys must be a list/],
    [() => limiter.peek('k', '10/s', any({ wait: 5 })), /^there is no option 'wait'; options are /],
    [() => limiter.lease('k', any(undefined)), /^options are missing: \{ capacity: …, ttl: … \}$/],
    [() => limiter.lease('k', any(5), any('30s')), /^options must be an object such as \{ capacity: …, ttl: … \}, not 5$/],
    [() => limiter.lease('k', any({ capacity: 1 })), /^ttl is missing: \{ capacity: …, ttl: … \}$/],
    [() => limiter.lease('k', any({ capacity: 1, ttl: '1s', tll: 1 })), /^there is no option 'tll'; options are /],
    [() => limiter.lease('k', { capacity: 1, ttl: '1s', renew: any(1) }), /^renew must be true or false/],
    [() => limiter.lease('k', { capacity: 1, ttl: '1s' }, any('work')), /^work must be a function, not 'work'$/],
    [() => limiter.lease('k', { capacity: 1, ttl: '1s', drops: [] }), /drops needs adapt/],
    [() => limiter.lease('k', { capacity: 1, ttl: '1s', adapt: any({ speed: 1 }) }), /there is no option 'adapt.speed'/],
    [() => limiter.local('k', '10/s', any(undefined)), /^options are missing: \{ processes: … \}$/],
    [() => limiter.budget('k', '10/s', any({ tll: 5 })), /^there is no option 'tll'; options are /],
    [() => limiter.limit('k', any(undefined)), /^a limiter is missing, such as '10\/s'/],
    [() => limiter.budget('', '10/s'), /^a key must be a text/],
    [() => budget.hold(1, any({ waits: 5 })), /^there is no option 'waits'; options are /],
    [() => budget.hold(1, any(() => 'done'), any({ tenant: 'ann' })), /^the options come before the work: hold\(estimate, options, work\)$/],
    [() => limiter.release('k', 'id', any(undefined)), /^options are missing: \{ within: … \}$/],
    [() => limiter.release('k', any(undefined), { within: '5s' }), /^id must be a text/],
    [() => limiter.settle(['k'], ['10/s'], 'id', { within: '5s', cost: NaN }), /^cost must be/],
    [() => limiter.settleAsk('k', 'api', 'id', NaN, { within: '5s' }), /^cost must be/],
    [() => limiter.ready(any({ limit: ['10/s'] })), /^there is no option 'limit'; options are /],
    [() => limiter.ready({ limits: any('10/s') }), /^limits must be/],
    [() => Reflect.construct(Gcra, [100, '1m']), /^period is missing: new Gcra\(maxBurst, count, period\)$/],
    [() => new Share(any(undefined)), /^options are missing: \{ processes: … \}$/],
    [() => new Rate('10/s', any({ brust: 5 })), /^there is no option 'brust'; options are /],
    [() => new Limit('10/s', any({ only: 1 })), /^there is no option 'only'; options are /],
    [() => new Concurrent(1, '1m', any({ reserve: 1 })), /^there is no option 'reserve'; options are /],
  ]
  for (const [call, message] of wrong) await assert.rejects(async () => call(), { name: 'ConfigurationError', message }, String(call))
  assert.deepEqual([limiter.counters.asked, limiter.counters.unavailable], [0, 0])
})
