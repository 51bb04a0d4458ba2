/** What values are in Node.js, the memory of refusals and what is taken. The contract's cases show the rest. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as all from 'redis-ratelimit'
import { Decision, Gcra, Limiter, Rate } from 'redis-ratelimit'
import { outcomeOf, type Drops } from '../dist/call/options.js'
import { limiterOf } from '../dist/call/rate.js'
import { Refusals } from '../dist/decide/refusals.js'
import { Taken } from '../dist/taken/taken.js'
import { slotOf } from '../dist/wire/slots.js'

const wrong = (message: RegExp) => ({ name: 'ConfigurationError', message })
const words = (limiter: Limiter) => [limiter.name, ...limiter.words].join(' ')

test('an object that is no limiter is wrong', () => {
  for (const none of [null, {}, { name: 'GCRA' }]) assert.throws(() => limiterOf(none as unknown as Limiter), wrong(/a limiter is needed/))
  assert.throws(() => new Gcra(15, 30, ['60s'] as never), wrong(/^period must be a whole number with ms, /))
  assert.throws(() => new all.Smooth(1, '1s', { factor: NaN }), wrong(/^factor/))
})

test('many rates are known, and none is mistaken for another', () => {
  for (let i = 1; i <= 2500; i += 1) assert.equal(words(limiterOf(`${i}/s`)), `GCRA ${i - 1} ${i} 1s`)
})

test('limiters never change', () => {
  for (const limiter of [new Gcra(9, 10, '1s'), new Rate('10/s')]) {
    assert(Object.isFrozen(limiter) && Object.isFrozen(limiter.words))
    assert.throws(() => ((limiter as { count: number }).count = 5), TypeError)
  }
})

test('a name that no header can have is wrong', () => {
  for (const name of ['ü', 'a\r\nX: y']) assert.throws(() => new Decision([0, 100, 50, 0, 9001]).headers(name), wrong(/printable ASCII/))
})

test('a class of each kind is taken for a class of errors, and no function is', () => {
  // As older compilers write a class.
  function Compiled(this: Error) {}
  Compiled.prototype = Object.create(Error.prototype)
  for (const drops of [class extends Error {}, TypeError, DOMException, Compiled])
    assert.deepEqual([new RangeError(), Reflect.construct(drops, [])].map((error) => outcomeOf(error, drops as Drops)), ['IGNORE', 'DROP'])
  const plain = function (error: unknown) {
    return error instanceof TypeError
  }
  assert.deepEqual([new RangeError(), new TypeError()].map((error) => outcomeOf(error, plain)), ['IGNORE', 'DROP'])
})

test('slots are those of the specification', () => {
  assert.equal(slotOf('123456789'), 0x31c3)
  assert.equal(slotOf('{user1000}.following'), slotOf('{user1000}.followers'))
  assert.equal(slotOf('foo{}{bar}'), slotOf('foo{}{bar}'))
  assert.notEqual(slotOf('foo{}{bar}'), slotOf('bar'))
  assert.equal(slotOf('foo{{bar}}zap'), slotOf('{bar'))
  assert.equal(slotOf('ключ'), slotOf('{ключ}'))
})

test('the memory of refusals leaves nothing behind, and what is known of few keys is taken for all others', () => {
  const at = (keys: string[]) => ({ keys, group: keys.join(' '), call: 'x' })
  const refusals = new Refusals(2, 100)
  const asked = refusals.generation
  for (let i = 0; i < 100; i += 1) refusals.keep(at(['all', `user:${i}`]), 'refused', 50, 0)
  assert.equal(refusals.size, 2)
  for (const key of ['all', 'b', 'c']) refusals.forget([key])
  assert.equal(refusals.size, 0)
  refusals.keep(at(['e']), 'asked before', 50, 0, asked)
  assert.equal(refusals.find(at(['e']), 1), undefined)
})

test('what nobody gives back is forgotten some time after its end', async () => {
  const [all, lasting] = [new Taken(() => performance.now()), { until: Infinity, end: async () => undefined }]
  all.add(lasting)
  for (let i = 0; i < 10_000; i++) all.add({ until: performance.now() - 1, end: () => Promise.reject(new Error('ended')) })
  assert.ok(all.size <= 1000)
  for (let i = 0; i < 3000; i++) all.add({ until: Infinity, end: async () => undefined })
  assert.ok(all.size > 3000)
})
