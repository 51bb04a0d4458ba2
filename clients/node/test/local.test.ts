/** Local limits and shares beyond the contract: batches, many keys, closing, and a real server with each client. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Closed, Decision, Gcra, Share, TokenBucket, type Limiter, type Local } from 'redis-ratelimit'
import { Counters } from '../dist/decide/counters.js'
import { Insurance, MOST_KEYS as MOST_SHARES, SWEEP } from '../dist/decide/insurance.js'
import { MOST_KEYS } from '../dist/local/local.js'
import { Store } from '../dist/local/store.js'
import { gateOn, user } from './gate-harness.js'
import { KINDS } from './kinds.js'
import { limiterOn } from './limiters.js'
import { startServer, until, type Server } from './servers.js'

const RATE = { most: 10_000, count: 10_000, period: 1000 }
const key = () => `local:${randomUUID()}`

/** The answer to the fetch that the store wants, in full. */
function fetched(store: Store, granted: number, sent: number, now: number): void {
  assert.equal(store.wanted, granted)
  store.wanted = 0
  store.fetched(new Decision([0, 10_000, 0, 0, 0, granted]), granted, sent, now)
}

/** 45 until 100 ms, of which 11 are left, and 47 until 130 ms. */
function withTwoBatches(counters = new Counters()): Store {
  const store = new Store(RATE, 100, 20, counters)
  store.take(600, 0, 0)
  assert.equal(store.take(1, 0, 0), 'wait')
  fetched(store, 45, 0, 1)
  assert(store.take(34, 30, 0) instanceof Decision)
  fetched(store, 47, 30, 31)
  return store
}

/** How much is spent until nothing is left. */
function left(store: Store, now: number): number {
  let spent = 0
  while (store.tryTake(1, now) !== 'ask') spent += 1
  return spent
}

test('each batch is forgotten at its own end', () => {
  assert.equal(left(withTwoBatches(), 99.9), 11 + 47)
  assert.equal(left(withTwoBatches(), 100), 47)
  assert.equal(left(withTwoBatches(), 130), 0)
})

test('a cost is spent from the oldest batch on', () => {
  const counters = new Counters()
  const store = withTwoBatches(counters)
  assert(store.tryTake(15, 90) instanceof Decision)
  assert.equal(left(store, 100), 47 - 4)
  assert.equal(counters.forgotten, 0)
})

test('what is given back ends with its batch', () => {
  const store = withTwoBatches()
  const decision = store.tryTake(11, 90) as Decision
  store.giveBack(11, decision, 95)
  assert.equal(left(store, 100), 47)
  store.giveBack(11, decision, 100)
  assert.equal(left(store, 100), 0)
})

test('a call waits for at most three fetches, and then asks directly', () => {
  const store = withTwoBatches()
  assert(store.take(58, 90, 0) instanceof Decision)
  for (const waits of [0, 1, 2]) {
    assert.equal(store.take(1, 91, waits), 'wait')
    fetched(store, store.wanted, 91, 92)
    assert(store.take(store.left, 92, 3) instanceof Decision)
  }
  assert.equal(store.take(1, 93, 3), 'ask')
})

test('a cost that never fits is no demand', () => {
  const store = new Store(RATE, 100, 20, new Counters())
  for (let call = 0; call < 10; call += 1) {
    assert.equal(store.take(10_001, 0, 0), 'ask')
    store.asked(undefined, 0)
  }
  assert.equal(store.take(1, 0, 0), 'ask')
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

for (const kind of KINDS) {
  describe(`a local limit, ${kind.name}`, () => {
    let server: Server
    before(async () => (server = await startServer()))
    after(() => server?.stop())

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

    test('ends with its limiter', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port)
      const limit = limiter.local(key(), new TokenBucket(10_000, 10_000, '1s'), { processes: 2 })
      await busy(limit)
      await limiter.close()
      await assert.rejects(async () => {
        for (;;) await limit.take()
      }, Closed)
    })

    test('admits its share while the server is stopped, and is back after it', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port, { timeoutMs: 200, breaker: { failures: 2, cooldownMs: 200 }, fail: new Share({ processes: 4 }) })
      const own = key()
      const limit = limiter.local(own, '400/m', { processes: 4 })
      await until(async () => (await limit.take()).source === 'server', 'an answer')
      server.process.kill('SIGSTOP')
      try {
        const ordinary = await limiter.limit(`${own}:2`, '8/m')
        assert.deepEqual([ordinary.allowed, ordinary.limit, ordinary.source, ordinary.answered], [true, 2, 'insurance', false])
        let allowed = 0
        for (let call = 0; call < 150; call += 1) if ((await limit.take()).allowed) allowed += 1
        assert(allowed >= 100 && allowed <= 104, `${allowed} of a share of 100`)
        assert.equal(limit.tryTake()?.source, 'insurance')
      } finally {
        server.process.kill('SIGCONT')
      }
      await until(async () => (await limit.take()).source === 'server', 'an answer after it')
      assert(limiter.counters.insuredRefused > 40)
    })
  })
}

describe('a limiter', () => {
  let server: Server
  before(async () => (server = await startServer()))
  after(() => server?.stop())

  test('keeps the local limits that are used', async (t) => {
    const { limiter } = await limiterOn(t, KINDS[0]!, server.port)
    const of = (name: string, processes = 2) => limiter.local(name, '1000/s', { processes })
    const first = of('0')
    for (let n = 1; n < MOST_KEYS + 10; n += 1) {
      of(`${n}`)
      if (n % 1000 === 0) assert.equal(of('0'), first)
    }
    assert.equal(of('0'), first)
    assert.notEqual(of('0', 3), first)
    const second = of('2')
    assert.equal(of('2'), second)
  })

  test('refuses what cannot be answered locally, with the reason', async (t) => {
    const { limiter } = await limiterOn(t, KINDS[0]!, server.port)
    const wrong = (limit: string | Limiter, options: object, text: RegExp) =>
      assert.throws(() => limiter.local('a', limit, options as never), { name: 'ConfigurationError', message: text })
    wrong('plan', { processes: 2 }, /^the policy 'plan' cannot be answered locally, since RL\.ASK has no PARTIAL$/)
    wrong(new TokenBucket(9, 9, '1s', { batch: true }), { processes: 2 }, /^TOKENBUCKET with batch cannot be answered locally/)
    wrong('10/s', {}, /^processes must be an integer between 1 and /)
    wrong('10/s', { processes: 2, hold: '2s' }, /^hold is too long: 20 come in within 2s, but the limit is 10 at once$/)
    wrong('10/s', { processes: 2, hold: '0' }, /^hold must be at least 1 ms$/)
    wrong('10/s', { processes: 2, held: '1s' }, /^there is no option 'held'$/)
    assert.throws(() => limiter.local('', '10/s', { processes: 2 }), /a key must be a text/)
    for (const cost of [0, 1.5, '1', NaN]) {
      assert.throws(() => limiter.local('a', '10/s', { processes: 2 }).tryTake(cost as number), /^ConfigurationError: cost must be/)
    }
  })

  test('refuses a rule that cannot be answered locally when its gate is made', (t) => {
    const rule = { name: 'api', key: () => 'all', limit: new Gcra(9, 10_000, '1s'), local: 4 }
    assert.throws(() => gateOn(t, server.port, [rule]), /^ConfigurationError: rule 'api': hold is too long: 1000 come in within 100ms/)
  })

  test('calls the hook of decisions from memory too', async (t) => {
    const heard: string[] = []
    const onDecision = ({ source }: Decision, { command, key }: { command: string; key: string }) => void heard.push(`${command} ${key} ${source}`)
    const { limiter } = await limiterOn(t, KINDS[0]!, server.port, { onDecision })
    const limit = limiter.local('heard', '10000/s', { processes: 4 })
    await limit.take(1000)
    await limit.take()
    limit.tryTake()
    assert.deepEqual(heard, ['server', 'local', 'local'].map((source) => `RL.GCRA heard ${source}`))
  })

  test('has a gate whose rule is answered from memory', async (t) => {
    const { gate, limiter, left: remaining } = gateOn(t, server.port, [
      { name: 'api', key: () => 'all', limit: '10000/s', local: 4 },
      { name: 'user', key: user, limit: '3/h' },
    ])
    // The rule has the local limit of its key.
    await limiter.local('api:all', '10000/s', { processes: 4 }).take(1000)
    for (let request = 0; request < 300; request += 1) assert.equal((await gate.enter({})).refusal, undefined)
    assert(limiter.counters.answeredLocally > 70, JSON.stringify(limiter.counters))
    for (let request = 0; request < 3; request += 1) await gate.enter({ user: 'ann' })
    const { refusal, headers } = await gate.enter({ user: 'ann' })
    assert.equal(refusal?.status, 429)
    assert.match(headers['RateLimit-Policy']!, /^"api";q=10000;w=1, "user";q=3;w=3600$/)
    assert.equal(await remaining('user:ann', 'GCRA', 2, 3, '1h'), 0)
  })
})
