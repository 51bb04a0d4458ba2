/** Rates, limiters, limits, decisions and headers: values that need no server. */

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as all from 'redis-ratelimit'
import {
  AskDecision,
  Calendar,
  combinedHeaders,
  Concurrent,
  Decision,
  type Duration,
  FixedWindow,
  Gcra,
  LeakyBucket,
  Limit,
  Limiter,
  MultiDecision,
  Penalty,
  Rate,
  SettledDecision,
  Sketch,
  SlidingLog,
  SlidingWindow,
  Smooth,
  TokenBucket,
  Uniform,
} from 'redis-ratelimit'
import { milliseconds } from '../dist/call/values.js'
import { limiterOf } from '../dist/call/rate.js'
import { slot } from '../dist/wire/slots.js'

const wrong = (message: RegExp) => ({ name: 'ConfigurationError', message })
const words = (limiter: Limiter) => [limiter.name, ...limiter.words].join(' ')

describe('rates', () => {
  const rates = [
    ['10/s', 'GCRA 9 10 1s'],
    ['1000/d', 'GCRA 999 1000 1d'],
    ['100/15m', 'GCRA 99 100 15m'],
    ['10 per minute', 'GCRA 9 10 1m'],
    ['1 per 2 hours', 'GCRA 0 1 2h'],
    [' 5 / 100 ms ', 'GCRA 4 5 100ms'],
    ['7 per week', 'GCRA 6 7 1w'],
  ] as const
  for (const [text, expected] of rates) {
    test(`'${text}' is ${expected}`, () => assert.equal(words(limiterOf(text)), expected))
  }

  test('the burst is another number than the count', () => {
    assert.equal(words(new Rate('10/s', { burst: 20 })), 'GCRA 19 10 1s')
    assert.throws(() => new Rate('10/s', { burst: 0 }), wrong(/^burst must be an integer between 1 and/))
  })

  for (const text of ['', 'api', '10', '10/', '/s', '10/x', '-1/s', '1.5/s', '10 s', '10/0s', '0/s', '99999999999999999/s']) {
    test(`'${text}' is no rate`, () => assert.throws(() => new Rate(text), { name: 'ConfigurationError' }))
  }

  test('an object that is no limiter is wrong', () => {
    for (const none of [undefined, null, 5, {}, { name: 'GCRA' }]) {
      assert.throws(() => limiterOf(none as unknown as Limiter), wrong(/a limiter is needed/))
    }
  })

  test('many rates are known, and none is mistaken for another', () => {
    for (let i = 1; i <= 2500; i += 1) assert.equal(words(limiterOf(`${i}/s`)), `GCRA ${i - 1} ${i} 1s`)
  })
})

describe('limiters', () => {
  test('have their arguments as words, options behind their tokens', () => {
    assert.equal(words(new Gcra(9, 10, '1s')), 'GCRA 9 10 1s')
    assert.equal(words(new TokenBucket(500, 100, '1s', { batch: true })), 'TOKENBUCKET 500 100 1s BATCH')
    assert.equal(words(new LeakyBucket(2, 1, '1s')), 'LEAKYBUCKET 2 1 1s')
    assert.equal(words(new FixedWindow(10, '1m', { aligned: false })), 'FIXEDWINDOW 10 1m')
    assert.equal(
      words(new Calendar(1000, 'MONTH', { zone: 'Europe/Lisbon', anchor: 31 })),
      'CALENDAR 1000 MONTH TZ Europe/Lisbon ANCHOR 31',
    )
    assert.equal(words(new SlidingWindow(100, '1m', { precision: '1s' })), 'SLIDINGWINDOW 100 1m PRECISION 1s')
    assert.equal(words(new SlidingLog(5, '15m', { gap: '0', countrefused: true })), 'SLIDINGLOG 5 15m GAP 0 COUNTREFUSED')
    assert.equal(words(new Uniform('2s')), 'UNIFORM 2s')
    assert.equal(words(new Uniform('1500ms')), 'UNIFORM 1500ms')
    assert.equal(words(new Smooth(100, '1s', { warmup: '10s', factor: 2.5 })), 'SMOOTH 100 1s WARMUP 10s COLDFACTOR 2.5')
    assert.equal(
      words(new Concurrent(20, '30s', { id: 'a', reserved: 5, critical: true })),
      'CONCURRENT 20 30s a RESERVED 5 CRITICAL',
    )
    assert.equal(words(new Concurrent(20, '30s')), 'CONCURRENT 20 30s')
    assert.equal(words(new Penalty(3, '10m', '10m', { grow: 2, max: '1d' })), 'PENALTY 3 10m 10m GROW 2 MAX 1d')
    assert.equal(words(new Sketch('203.0.113.7', 9, 10, '1s', { width: 1024 })), 'SKETCH 203.0.113.7 9 10 1s WIDTH 1024')
  })

  test('cannot be wrong', () => {
    assert.throws(() => new Gcra(-1, 10, '1s'), wrong(/^maxBurst must be an integer between 0 and 9007199254740991, not -1$/))
    assert.throws(() => new Gcra(9, 1.5, '1s'), wrong(/^count must be an integer/))
    assert.throws(
      () => new Gcra(9, 10, '1 fortnight'),
      wrong(/^period must be a whole number with ms, s, m, h, d or w, such as '90s', not '1 fortnight'$/),
    )
    assert.throws(() => new Gcra(9, 10, '0'), wrong(/^period must be between 1 and 3153600000000 ms/))
    assert.throws(() => new Gcra(9, 10, '5300w'), wrong(/^period must be between/))
    assert.throws(() => new Gcra(9, 10, '1.5s'), wrong(/^period/))
    assert.throws(() => new Gcra('9' as unknown as number, 10, '1s'), wrong(/^maxBurst/))
    assert.throws(() => new Smooth(1, '1s', { factor: 0.5 }), wrong(/^factor must be between 1 and 1000/))
    assert.throws(() => new Smooth(1, '1s', { factor: NaN }), wrong(/^factor/))
    assert.throws(() => new Calendar(5, ''), wrong(/^unit must be HOUR, DAY/))
    assert.throws(() => new Calendar(5, 'WEEK', { anchor: 32 }), wrong(/^anchor must be an integer between 1 and 31/))
    assert.throws(() => new Concurrent(5, '30s', { id: '' }), wrong(/^id/))
  })

  test('never change', () => {
    const limiter = new Gcra(9, 10, '1s')
    assert(Object.isFrozen(limiter) && Object.isFrozen(limiter.words))
    assert.throws(() => ((limiter as { count: number }).count = 5), TypeError)
  })

  test('durations have units', () => {
    const ms = ['250ms', '90s', '15m', '1h', '1d', '2w', '0', '00', '0s'].map((value) => milliseconds('x', value))
    assert.deepEqual(ms, [250, 90_000, 900_000, 3_600_000, 86_400_000, 1_209_600_000, 0, 0, 0])
  })

  test('a duration without a unit is wrong, and named', () => {
    const number = (value: unknown) => value as Duration
    for (const bare of ['60', 60]) {
      const needed = (name: string) => wrong(new RegExp(`^${name} needs a unit: '60ms', '60s' or '60m'$`))
      assert.throws(() => new Gcra(15, 30, number(bare)), needed('period'))
      assert.throws(() => new FixedWindow(5, number(bare)), needed('window'))
      assert.throws(() => new Penalty(3, '10m', number(bare)), needed('ban'))
      assert.throws(() => new SlidingLog(5, '1m', { gap: number(bare) }), needed('gap'))
      assert.throws(() => new Concurrent(5, number(bare)), needed('ttl'))
    }
    assert.throws(() => new SlidingLog(5, '1m', { gap: number(0) }), wrong(/^gap needs a unit: '0ms', '0s' or '0m'$/))
    assert.throws(() => new Gcra(15, 30, number(-1)), wrong(/^period must be a whole number with ms, .*, not -1$/))
    assert.throws(() => new Gcra(15, 30, number(['60s'])), wrong(/^period must be a whole number with ms, /))
  })
})

describe('limits', () => {
  test('say what a limiter is for', () => {
    assert.equal(new Limit('10/s').clause.join(' '), 'LIMIT GCRA 9 10 1s')
    assert.equal(
      new Limit(new Uniform('2s'), { on: 2, cost: 0, shadow: true }).clause.join(' '),
      'LIMIT UNIFORM 2s ON 2 COST 0 SHADOW',
    )
    assert.throws(() => new Limit('10/s', { on: 0 }), wrong(/^on must be/))
    assert.throws(() => new Limit('10/s', { cost: -1 }), wrong(/^cost must be/))
  })
})

describe('headers', () => {
  const admitted = [0, 100, 50, 0, 9001]
  const refused = [1, 100, 0, 7500, 9500]
  const policy = (limiter?: Limiter) => new Decision(admitted, limiter).headers('x')['RateLimit-Policy']

  test('of an admitted and of a refused request', () => {
    const limiter = new SlidingLog(100, '10s')
    assert.deepEqual(new Decision(admitted, limiter).headers(), {
      'RateLimit-Policy': '"default";q=100;w=10',
      RateLimit: '"default";r=50;t=10',
    })
    assert.deepEqual(new Decision(refused, limiter).headers('user'), {
      'RateLimit-Policy': '"user";q=100;w=10',
      RateLimit: '"user";r=0;t=8',
      'Retry-After': '8',
    })
  })

  test('name the count and the time of the limiter', () => {
    assert.equal(policy(), '"x";q=100')
    assert.equal(policy(new Rate('10/s', { burst: 20 })), '"x";q=10;w=1')
    assert.equal(policy(new TokenBucket(500, 100, '1s')), '"x";q=100;w=1')
    assert.equal(policy(new LeakyBucket(5, 2, '1m')), '"x";q=2;w=60')
    assert.equal(policy(new Smooth(7, '1s')), '"x";q=7;w=1')
    assert.equal(policy(new FixedWindow(5, '1h')), '"x";q=5;w=3600')
    assert.equal(policy(new Uniform('2s')), '"x";q=1;w=2')
    assert.equal(policy(new Sketch('a', 9, 10, '1s')), '"x";q=10;w=1')
    assert.equal(policy(new Calendar(5, 'day')), '"x";q=5;w=86400')
    assert.equal(policy(new Calendar(5, 'MONTH')), '"x";q=5')
    assert.equal(policy(new Penalty(3, '10m', '10m')), '"x";q=100')
    assert.equal(policy(new Gcra(0, 2, '1500ms')), '"x";q=100', 'not a number of whole seconds')
  })

  test('a lease has no time, and may come free soon', () => {
    assert.deepEqual(new Decision([1, 5, 0, 29000, 30000], new Concurrent(5, '30s')).headers('jobs'), {
      'RateLimit-Policy': '"jobs";q=5;qu="concurrent-requests"',
      RateLimit: '"jobs";r=0',
      'Retry-After': '1',
    })
  })

  test('never has no Retry-After, and no answer has no headers', () => {
    assert.deepEqual(new Decision([1, 16, 16, -1, 0]).headers(), {
      'RateLimit-Policy': '"default";q=16',
      RateLimit: '"default";r=16',
    })
    const none = new Decision([0, 0, 0, 0, 0], undefined, new all.Unavailable('RL.GCRA', 'timeout', 'late', 'redis:6379', true))
    assert.deepEqual([none.answered, none.headers()], [false, {}])
  })

  test('of several limits list those that refuse', () => {
    const named = [
      ['a', new Decision(admitted)],
      ['b', new Decision(refused)],
      ['c', new Decision([1, 5, 0, 900, 900])],
    ] as const
    assert.deepEqual(combinedHeaders(named, false), {
      'RateLimit-Policy': '"a";q=100, "b";q=100, "c";q=5',
      RateLimit: '"b";r=0;t=8, "c";r=0;t=1',
      'Retry-After': '8',
    })
    assert.deepEqual(combinedHeaders(named.slice(0, 1), true), { 'RateLimit-Policy': '"a";q=100', RateLimit: '"a";r=50;t=10' })
    assert.equal(
      combinedHeaders(
        [
          ['a', new Decision(refused)],
          ['b', new Decision([1, 5, 0, -1, 0])],
        ],
        false,
      )['Retry-After'],
      undefined,
    )
    assert.deepEqual(combinedHeaders([], true), {})
  })

  test('a name is quoted', () => {
    assert.equal(new Decision(admitted).headers('a "b"')['RateLimit-Policy'], '"a \\"b\\"";q=100')
    assert.throws(() => new Decision(admitted).headers('ü'), wrong(/printable ASCII/))
    assert.throws(() => new Decision(admitted).headers('a\r\nX: y'), wrong(/printable ASCII/))
  })
})

describe('decisions', () => {
  test('grow older', () => {
    const limiter = new FixedWindow(5, '1h')
    const multi = new MultiDecision([1, 5, 0, 1000, 900], [new Decision([1, 5, 0, 1000, 900], limiter)])
    const later = multi.age(950.5)
    assert(later instanceof MultiDecision)
    assert.deepEqual([later.retryAfter, later.resetAfter, later.allowed], [50, 0, false])
    assert.deepEqual([later.each[0]?.retryAfter, later.each[0]?.limiter], [50, limiter])
    const asked = new AskDecision([1, 5, 0, 1000, 900], 2, [new Decision([1, 5, 0, 1000, 900])]).age(1)
    assert.deepEqual([asked.binding, asked.retryAfter, asked.each?.[0]?.resetAfter], [2, 999, 899])
    assert.equal(new Decision([1, 5, 5, -1, 0]).age(10).retryAfter, null)
  })

  test('have what their kind has', () => {
    assert.deepEqual(
      [new SettledDecision([0, 5, 5, 0, 0, 1]).settled, new SettledDecision([0, 5, 5, 0, 0, 0]).settled],
      [true, false],
    )
    assert.deepEqual([new AskDecision([0, 5, 5, 0, 0], 2).binding, new AskDecision([0, 5, 5, 0, 0], 0).binding], [2, null])
  })
})

test('slots are those of the specification', () => {
  assert.equal(slot('123456789'), 0x31c3)
  assert.equal(slot('{user1000}.following'), slot('{user1000}.followers'))
  assert.equal(slot('foo{}{bar}'), slot('foo{}{bar}'))
  assert.notEqual(slot('foo{}{bar}'), slot('bar'))
  assert.equal(slot('foo{{bar}}zap'), slot('{bar'))
  assert.equal(slot('ключ'), slot('{ключ}'))
})

test('every limiter of the server is a class', () => {
  const names = Object.values(all).filter((value) => typeof value === 'function' && value.prototype instanceof Limiter)
  assert(names.length >= 13)
})
