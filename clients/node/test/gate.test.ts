import assert from 'node:assert/strict'
import { after, before, describe, test, type TestContext } from 'node:test'
import { Redis } from 'ioredis'
import { Concurrent, FixedWindow, Gcra, LeakyBucket, Penalty, SlidingLog, TokenBucket, Uniform } from 'redis-ratelimit'
import { Stack, type Rule } from 'redis-ratelimit/gate'
import { gateOn, team, user, type Asking } from './gate-harness.js'
import { quiet } from './rate-limiter-flexible.clients.js'
import { startServer, type Server } from './servers.js'

describe('a gate on one server', () => {
  let server: Server
  let redis: Redis
  before(async () => {
    server = await startServer()
    redis = quiet(new Redis(server.port))
  })
  after(async () => {
    redis?.disconnect()
    await server?.stop()
  })
  const made = (t: TestContext, rules: Rule<Asking>[], options = {}) => gateOn(t, server.port, rules, options)

  test('a request without any rule goes on without a question', async (t) => {
    const { gate, limiter } = made(t, [{ name: 'default', key: user, limit: '1/m' }])
    const { refusal, headers } = await gate.enter({}, undefined)
    assert.deepEqual([refusal, headers, limiter.counters.asked], [undefined, {}, 0])
  })

  test('a request is charged each time, also if an object comes again', async (t) => {
    const { gate, left, lines } = made(t, [{ name: 'messages', key: user, limit: new FixedWindow(2, '1h') }])
    const socket = { user: 'ann' }
    const entered = async () => (await gate.enter(socket)).refusal?.status
    assert.deepEqual([await entered(), await entered(), await entered(), await entered()], [undefined, undefined, 429, 429])
    assert.deepEqual([await left('messages:ann', 'FIXEDWINDOW', 2, '1h'), lines], [0, []])
  })

  test('what stands before a request twice is charged once', async (t) => {
    const { gate, left } = made(t, [{ name: 'rate', key: user, limit: new FixedWindow(9, '1h') }])
    const stack = new Stack()
    const { spent } = await gate.enter({ user: 'ann' }, undefined, stack)
    await gate.enter({ user: 'ann' }, spent, stack)
    assert.equal(await left('rate:ann', 'FIXEDWINDOW', 9, '1h'), 8)
  })

  test('what is queued or booked waits for its turn', async (t) => {
    const { gate } = made(t, [{ name: 'queue', key: user, limit: new LeakyBucket(2, 1, '300ms') }])
    await gate.enter({ user: 'ann' })
    const passage = await gate.enter({ user: 'ann' })
    assert.ok(passage.wait > 200 && passage.wait <= 300, String(passage.wait))
    const begun = performance.now()
    await passage.turn()
    assert.ok(performance.now() - begun > passage.wait - 10)
  })

  test('who waits in a queue is told when the limiter closes', { timeout: 20_000 }, async (t) => {
    const { gate, limiter } = made(t, [{ name: 'queue', key: user, limit: new LeakyBucket(2, 1, '1h') }])
    await gate.enter({ user: 'ann' })
    const turn = (await gate.enter({ user: 'ann' })).turn()
    await Promise.all([limiter.close(), assert.rejects(turn, { name: 'Closed' })])
  })

  test('what ends before its turn gives back its budget, and waits no longer', async (t) => {
    const rules: Rule<Asking>[] = [
      { name: 'queue', key: user, limit: new LeakyBucket(9, 1, '1h') },
      { name: 'tokens', key: user, limit: new TokenBucket(100, 1, '1h'), estimate: 40 },
    ]
    const { gate, left } = made(t, rules)
    const [first, second] = [await gate.enter({ user: 'ann' }), await gate.enter({ user: 'ann' })]
    assert.equal(await first.turn(), true)
    await first.end()
    const turn = second.turn()
    await second.end()
    assert.deepEqual([await turn, await second.turn(), await left('tokens:ann', 'TOKENBUCKET', 100, 1, '1h')], [false, false, 60])
  })

  for (const counted of [undefined, 30]) {
    test(`what ends in front of a later gate is charged what is counted, here ${counted ?? 'nothing'}`, async (t) => {
      const first = made(t, [{ name: 'tokens', key: user, limit: new TokenBucket(100, 1, '1h'), estimate: 40 }])
      const { gate } = made(t, [{ name: 'queue', key: () => 'all', limit: new LeakyBucket(9, 1, '1h') }])
      await gate.enter({})
      const entered = async (user: string) => {
        const [request, stack] = [{ user }, new Stack()]
        const one = await first.gate.enter(request, undefined, stack)
        if (counted !== undefined) one.spent['tokens'] = counted
        return { one, two: gate.enter(request, one.spent, stack) }
      }
      const left = (user: string) => first.left(`tokens:${user}`, 'TOKENBUCKET', 100, 1, '1h')
      const asks = await entered('ann')
      await asks.one.end()
      await (await asks.two).end()
      const waits = await entered('bob')
      const two = await waits.two
      const turn = two.turn()
      await Promise.all([waits.one.end(), two.end()])
      assert.deepEqual([await turn, await left('ann'), await left('bob')], [false, 100 - (counted ?? 0), 100 - (counted ?? 0)])
    })
  }

  test('a penalty counts the refusals of the other rules', async (t) => {
    const { gate } = made(t, [
      { name: 'rate', key: user, limit: new FixedWindow(1, '1m') },
      { name: 'ban', key: user, limit: new Penalty(2, '10m', '1h') },
    ])
    const told = []
    for (let i = 0; i < 4; i++) told.push((await gate.enter({ user: 'ann' }, undefined)).headers['Retry-After'])
    assert.deepEqual(told.map((wait) => Number(wait) > 60), [false, false, true, true])
  })

  test('a request that nobody waits for is not charged to its budget', async (t) => {
    const { gate, left } = made(t, [{ name: 'tokens', key: user, limit: new TokenBucket(100, 1, '1h'), estimate: 60 }])
    const pass = await gate.enter({ user: 'ann' }, undefined)
    assert.equal(await left('tokens:ann', 'TOKENBUCKET', 100, 1, '1h'), 40)
    await pass.cancel()
    await pass.end()
    assert.equal(await left('tokens:ann', 'TOKENBUCKET', 100, 1, '1h'), 100)
  })

  test('a strange count is charged as a whole number, or as estimated', async (t) => {
    const { gate, left } = made(t, [{ name: 'tokens', key: user, limit: new TokenBucket(1000, 1, '1h'), estimate: 60 }])
    const charged = async (user: string, spent: unknown) => {
      const pass = await gate.enter({ user }, undefined)
      pass.spent['tokens'] = spent as number
      await pass.end()
      return 1000 - ((await left(`tokens:${user}`, 'TOKENBUCKET', 1000, 1, '1h')) ?? 0)
    }
    assert.deepEqual(
      [await charged('a', 10.2), await charged('b', -5), await charged('c', NaN), await charged('d', 'many'), await charged('e', 900)],
      [11, 0, 60, 60, 900],
    )
  })

  test('two gates share what the handler counts', async (t) => {
    const rule = (name: string): Rule<Asking> => ({ name, key: user, limit: new TokenBucket(100, 1, '1h'), estimate: 50 })
    const [first, second] = [made(t, [rule('in')]), made(t, [rule('out')])]
    const one = await first.gate.enter({ user: 'ann' }, undefined)
    const two = await second.gate.enter({ user: 'ann' }, one.spent)
    Object.assign(two.spent, { in: 10, out: 20 })
    await Promise.all([one.end(), two.end()])
    assert.equal(await first.left('in:ann', 'TOKENBUCKET', 100, 1, '1h'), 90)
    assert.equal(await second.left('out:ann', 'TOKENBUCKET', 100, 1, '1h'), 80)
  })

  test('reserved and critical leases stay so', async (t) => {
    const { gate } = made(t, [
      { name: 'jobs', key: () => 'all', limit: ({ team }) => new Concurrent(2, '1m', { reserved: 1, critical: team === 'ops' }) },
    ])
    const codes = []
    for (const team of ['dev', 'dev', 'ops', 'ops']) codes.push((await gate.enter({ team }, undefined)).refusal?.status)
    assert.deepEqual(codes, [undefined, 429, undefined, 429])
  })

  test('a policy that refuses gives back what other rules took', async (t) => {
    await redis.call('RL.POLICY', 'SET', 'one', 'LIMIT', 'FIXEDWINDOW', '1', '1h')
    await redis.call('RL.POLICY', 'SET', 'slots', 'LIMIT', 'CONCURRENT', '9', '1m', 'LIMIT', 'TOKENBUCKET', '90', '1', '1h')
    const { gate, left, info } = made(t, [
      { name: 'rate', key: user, limit: new FixedWindow(9, '1h') },
      { name: 'gap', key: user, limit: new Uniform('1h'), cost: 1 },
      { name: 'tokens', key: user, limit: new TokenBucket(100, 1, '1h'), estimate: 60 },
      { name: 'streams', key: user, limit: new Concurrent(3, '1m') },
      { name: 'first', key: user, policy: 'slots', estimate: 40 },
      { name: 'last', key: team, policy: 'one' },
    ])
    assert.equal((await gate.enter({ team: 'red' }, undefined)).refusal, undefined)
    const { refusal, headers } = await gate.enter({ user: 'ann', team: 'red' }, undefined)
    assert.equal(refusal?.status, 429)
    assert.deepEqual(JSON.parse(refusal?.body ?? '')['violated-policies'], ['last'])
    assert.match(headers['RateLimit-Policy'] ?? '', /"rate";.*"gap";.*"tokens";.*"streams";.*"first";.*"last"/)
    assert.equal(await left('rate:ann', 'FIXEDWINDOW', 9, '1h'), 9)
    assert.equal(await left('gap:ann', 'UNIFORM', '1h'), 1)
    assert.equal(await left('tokens:ann', 'TOKENBUCKET', 100, 1, '1h'), 100)
    assert.equal(await left('streams:ann', 'CONCURRENT', 3, '1m', 'nobody'), 3)
    assert.equal(await info('first:ann'), 'null')
  })

  test('what a function of a rule returns is checked, and is no pass', async (t) => {
    const { gate } = made(t, [{ name: 'plan', key: user, limit: () => 'fast', cost: 1 }])
    await assert.rejects(gate.enter({ user: 'ann' }, undefined), { name: 'ConfigurationError', message: /rule 'plan': 'fast'/ })
    for (const [rule, message] of [
      [{ key: user, limit: () => '' }, /rule 'plan': '' is no rate/],
      [{ key: user, policy: () => '' }, /rule 'plan': policy must be/],
      [{ key: user, limit: () => 5 }, /rule 'plan': a limiter is needed/],
      [{ key: () => '', limit: '1/m' }, /rule 'plan': key must return a text that is not empty/],
      [{ key: () => ({}), limit: '1/m' }, /rule 'plan': key must return .*, not an object/],
      [{ key: user, limit: '1/m', cost: () => undefined }, /rule 'plan': cost/],
      [{ key: user, limit: '1/m', estimate: () => undefined }, /rule 'plan': estimate/],
    ] as const) {
      const { gate } = made(t, [{ name: 'plan', ...rule } as unknown as Rule<Asking>])
      await assert.rejects(gate.enter({ user: 'ann' }, undefined), { name: 'ConfigurationError', message })
    }
    const other = made(t, [{ name: 'size', key: user, limit: '1/s', cost: () => 1.5 }])
    await assert.rejects(other.gate.enter({ user: 'ann' }, undefined), { name: 'ConfigurationError', message: /rule 'size': cost/ })
  })

  test('refusals are answered from memory, but not those of leases and budgets', async (t) => {
    const rules: Rule<Asking>[] = [{ name: 'rate', key: user, limit: '1/h' }, { name: 'streams', key: team, limit: new Concurrent(1, '1m') }]
    const { gate, limiter } = made(t, rules, { cache: {} })
    for (let i = 0; i < 4; i++) await gate.enter({ user: 'ann' }, undefined)
    assert.equal(limiter.counters.cached, 2)
    for (let i = 0; i < 4; i++) await gate.enter({ team: 'red' }, undefined)
    assert.equal(limiter.counters.cached, 2)
  })

  test('fifty callers at once get exactly what there is', async (t) => {
    const { gate } = made(t, [{ name: 'rate', key: user, limit: new SlidingLog(100, '1h') }, { name: 'burst', key: user, limit: new Gcra(999, 1, '1h') }])
    const passes = await Promise.all(Array.from({ length: 300 }, () => gate.enter({ user: 'ann' }, undefined)))
    assert.equal(passes.filter(({ refusal }) => refusal === undefined).length, 100)
  })
})
