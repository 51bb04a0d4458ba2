/** Local limits and shares beyond the contract: what is given back, many keys, and a real server with each client. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Decision, type Local } from 'redis-ratelimit'
import { Counters } from '../dist/decide/counters.js'
import { Insurance, MOST_KEYS as MOST_SHARES, SWEEP } from '../dist/decide/insurance.js'
import { MOST_KEYS } from '../dist/local/local.js'
import { Store } from '../dist/local/store.js'
import { KINDS } from './kinds.js'
import { eachKind, limiterOn, onServer } from './limiters.js'

const RATE = { most: 10_000, count: 10_000, period: 1000 }
const key = () => `local:${randomUUID()}`

/** The answer to the fetch that the store wants, in full. */
function fetched(store: Store, granted: number, sent: number, now: number): void {
  assert.equal(store.wanted, granted)
  store.wanted = 0
  store.fetched(new Decision([0, 10_000, 0, 0, 0, granted]), granted, sent, now)
}

test('what is given back ends with its batch', () => {
  const store = new Store(RATE, 100, 20, new Counters())
  store.take(600, 0, 0)
  assert.equal(store.take(1, 0, 0), 'wait')
  fetched(store, 45, 0, 1)
  assert(store.take(34, 30, 0) instanceof Decision)
  fetched(store, 47, 30, 31)
  const decision = store.tryTake(11, 90) as Decision
  for (const now of [95, 100]) store.giveBack(11, decision, now)
  assert.equal(store.tryTake(48, 100), 'ask')
  assert(store.tryTake(47, 100) instanceof Decision)
})

test('a call waits for at most three fetches, and then asks directly', () => {
  const store = new Store(RATE, 100, 20, new Counters())
  store.take(600, 0, 0)
  for (const waits of [0, 1, 2]) {
    assert.equal(store.take(1, 91, waits), 'wait')
    fetched(store, store.wanted, 91, 92)
    assert(store.take(store.left, 92, 3) instanceof Decision)
  }
  assert.equal(store.take(1, 93, 3), 'ask')
})

test('new keys are refused while many shares are in use', () => {
  const insurance = new Insurance()
  const slow = { most: 4, count: 4, period: 10_000 }
  const allowed = (place: string, now: number) => insurance.take([{ place, rate: slow, processes: 2, cost: 1 }], now, true)[0] === 0
  for (let n = 0; n < MOST_SHARES; n += 1) assert(allowed(`${n}`, 0))
  assert.deepEqual(insurance.take([{ place: 'new', rate: slow, processes: 2, cost: 1 }], 1000, true), [1, 2, 0, SWEEP, 0])
  assert.deepEqual([allowed('0', 1000), allowed('0', 1000), allowed('new', 1500)], [true, false, false])
  assert(allowed('new', 5000), 'those that are full again have gone')
  assert.equal(insurance.size, 2)
})

/** Calls as of a busy process: batches are fetched from then on. */
async function busy(limit: Local): Promise<void> {
  await limit.take(1000)
  for (let call = 0; call < 300; call += 1) await limit.take()
}

eachKind('a local limit', (kind, server) => {
  test('is answered from memory, and no more is spent than was granted', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port)
    const limit = limiter.local(key(), '1000/s', { hold: '50ms', processes: 1 })
    const begun = performance.now()
    let spent = 0
    // The loop gives way to the reply, since an answer from memory takes only a microtask.
    for (let call = 0; performance.now() - begun < 1500; call += 1) {
      if ((limit.tryTake() ?? (await limit.take())).allowed) spent += 1
      if (call % 100 === 0) await pause(1)
    }
    const ms = performance.now() - begun
    assert(spent > 1000 + 700 && spent <= 1000 + ms + 50, `${spent} in ${ms} ms`)
    const { asked, allowed, refused, answeredLocally, fetched, forgotten } = limiter.counters
    assert.deepEqual([allowed, asked], [spent, allowed + refused])
    assert(answeredLocally > 0.9 * asked && fetched >= answeredLocally - refused - forgotten)
  })

  test('waits for one fetch with many calls at once, and shares its decision', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port)
    const limit = limiter.local(key(), '1000000/s', { hold: '400ms', processes: 4 })
    await busy(limit)
    const before = limiter.counters
    assert(before.answeredLocally > 250 && before.fetches < 5, JSON.stringify(before))
    const decisions = await Promise.all(Array.from({ length: 50 }, () => limit.take()))
    assert(decisions.every(({ allowed }) => allowed))
    assert(new Set(decisions.filter(({ source }) => source === 'local')).size <= 3)
  })
})

onServer('a limiter', (server) => {
  test('keeps the local limits that are used', async (t) => {
    const { limiter } = await limiterOn(t, KINDS[0]!, server.port)
    const of = (name: string, processes = 2) => limiter.local(name, '1000/s', { processes })
    const [first, oldest] = [of('0'), of('1')]
    for (let n = 2; n < MOST_KEYS + 10; n += 1) {
      of(`${n}`)
      if (n % 1000 === 0) assert.equal(of('0'), first)
      if (n === MOST_KEYS - 1) assert.equal(of('1'), oldest)
    }
    assert.equal(of('0'), first)
    assert.notEqual(of('0', 3), first)
    const second = of('2')
    assert.equal(of('2'), second)
  })
})
