import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Redis } from 'ioredis'
import { AskDecision, CallError, Concurrent, MultiDecision, RateLimiter, Smooth, TokenBucket, Unavailable } from 'redis-ratelimit'
import { Gate, type GateOptions, type Rule } from 'redis-ratelimit/gate'
import { gateOn, team, user, type Asking } from './gate-harness.js'
import { quiet } from './rate-limiter-flexible.clients.js'
import { startServer, until } from './servers.js'

describe('a gate with wrong rules, or without a server that answers', () => {
  test('rules are checked when they are made', () => {
    const limiter = new RateLimiter(quiet(new Redis(1, { lazyConnect: true })))
    const wrong: [object, RegExp][] = [
      [{ name: '', key: user, limit: '1/s' }, /'' is no name/],
      [{ name: 'a"b', key: user, limit: '1/s' }, /'a"b' is no name/],
      [{ name: 'a', key: 'ann', limit: '1/s' }, /rule 'a': key/],
      [{ name: 'a', key: user }, /rule 'a': it needs either a limit or a policy/],
      [{ name: 'a', key: user, limit: '1/s', policy: 'api' }, /rule 'a': it needs either/],
      [{ name: 'a', key: user, limit: '1/s', cost: 1, estimate: 1 }, /rule 'a': it has either/],
      [{ name: 'a', key: user, limit: '1/s', cost: -1 }, /rule 'a': cost/],
      [{ name: 'a', key: user, limit: '1/s', estimate: 0 }, /rule 'a': estimate/],
      [{ name: 'a', key: user, limit: '1/s', estimate: 5, hold: 'soon' }, /rule 'a': hold/],
      [{ name: 'a', key: user, limit: '1/s', estimate: 5, hold: 60 }, /rule 'a': hold needs a unit: '60ms', '60s' or '60m'/],
      [{ name: 'a', key: user, limit: 'fast' }, /rule 'a': 'fast'/],
      [{ name: 'a', key: user, limit: new Smooth(5, '1s'), estimate: 5 }, /rule 'a': SMOOTH/],
      [{ name: 'a', key: user, policy: '' }, /rule 'a': policy/],
      [{ name: 'a', key: user, limit: '' }, /rule 'a': '' is no rate/],
      [{ name: 'a', key: user, lmit: '1/s' }, /rule 'a': there is no option 'lmit'/],
      [{ name: 'a', key: user, limit: '1/s', cost: '5' }, /rule 'a': cost/],
      [null as never, /undefined is no name of a rule/],
    ]
    for (const [rule, message] of wrong) {
      assert.throws(() => new Gate({ limiter, rules: [rule as Rule<Asking>] }), { name: 'ConfigurationError', message }, JSON.stringify(rule))
    }
    const rules = [{ name: 'a', key: user, limit: '1/s' }]
    const shed = { key: 'fleet', utilization: () => 0, tier: () => 1, tiers: 1 }
    const options: [object | undefined, RegExp][] = [
      [undefined, /options must be an object, not undefined/],
      [{ limiter: {}, rules }, /RateLimiter/],
      [{ limiter, rules, shedd: shed }, /there is no option 'shedd'/],
      [{ limiter }, /rules must be a list, not undefined/],
      [{ limiter, rules: [] }, /neither rules nor a shed/],
      [{ limiter, rules: [], shed: { ...shed, tiers: 0 } }, /shed.tiers/],
      [{ limiter, rules: [], shed: { ...shed, tier: 1 } }, /shed.tier must be a function, not 1/],
      [{ limiter, rules: [], shed: { ...shed, bad: NaN } }, /shed.bad must be between 0 and 1, not NaN/],
      [{ limiter, rules: [], shed: { ...shed, delay: 'soon' } }, /shed.delay/],
      [{ limiter, rules: [], shed: { ...shed, delay: 28 } }, /shed.delay needs a unit: '28ms', '28s' or '28m'/],
      [{ limiter, rules: [], shed: { ...shed, ramp: '120' } }, /shed.ramp needs a unit: '120ms', '120s' or '120m'/],
      [{ limiter, rules: [], shed: { ...shed, gud: 0.5 } }, /there is no option 'shed.gud'/],
    ]
    for (const [one, message] of options) {
      assert.throws(() => new Gate(one as GateOptions<Asking>), { name: 'ConfigurationError', message })
    }
    return limiter.close()
  })

  test('the first request checks the rules, and each one until they are right', async (t) => {
    const own = await startServer()
    t.after(() => own.stop())
    const { gate } = gateOn(t, own.port, [{ name: 'api', key: user, policy: 'later' }])
    const asked = () => gate.enter({ user: 'ann' }, undefined)
    await assert.rejects(asked(), { name: 'ConfigurationError', message: /rule 'api': .*no such policy 'later'/ })
    await assert.rejects(asked(), { name: 'ConfigurationError' })
    await own.cli('RL.POLICY', 'SET', 'later', 'LIMIT', 'GCRA', '9', '10', '1s')
    assert.equal((await asked()).refusal, undefined)
  })

  test('rules that could not be checked at the start are checked when the server is there', async (t) => {
    const own = await startServer()
    await own.stop()
    const rules: Rule<Asking>[] = [{ name: 'api', key: ({ team }) => team, policy: 'nobody' }]
    const { gate, lines } = gateOn(t, own.port, rules, { timeout: 200, connectTimeout: 300, breaker: null })
    await gate.ready()
    assert.ok(lines.some((line) => line.includes('could not be checked')))
    assert.equal((await gate.enter({ team: 'red' }, undefined)).refusal, undefined)
    const again = await startServer([], { port: own.port })
    t.after(() => again.stop())
    const throws = () => gate.enter({}, undefined).then(() => false, (error: Error) => error.name === 'ConfigurationError')
    await until(throws, 'a check of the rules')
  })

  test('a server that hangs at the start delays a request by no more than a connection', async (t) => {
    const own = await startServer()
    t.after(() => own.stop())
    own.process.kill('SIGSTOP')
    const { gate } = gateOn(t, own.port, [{ name: 'rate', key: user, limit: '1/m' }], { timeout: 100, connectTimeout: 300, breaker: null })
    const begun = performance.now()
    assert.equal((await gate.enter({ user: 'ann' }, undefined)).refusal, undefined)
    assert.ok(performance.now() - begun < 1900)
    own.process.kill('SIGCONT')
  })

  test('a server that hangs costs one time-out, whatever the number of questions', async (t) => {
    const own = await startServer()
    t.after(() => own.stop())
    await own.cli('RL.POLICY', 'SET', 'api', 'LIMIT', 'GCRA', '9', '10', '1s')
    const rules: Rule<Asking>[] = [{ name: 'rate', key: user, limit: '1/m' }, { name: 'api', key: user, policy: 'api' }]
    const { gate, limiter } = gateOn(t, own.port, rules, { timeout: 100, breaker: null })
    await gate.ready()
    own.process.kill('SIGSTOP')
    assert.equal((await gate.enter({ user: 'ann' }, undefined)).refusal, undefined)
    own.process.kill('SIGCONT')
    assert.equal(limiter.counters.unavailable, 1)
  })

  test('failing closed gives back what a late answer takes', async (t) => {
    const own = await startServer()
    t.after(() => own.stop())
    const rules: Rule<Asking>[] = [
      { name: 'tokens', key: user, limit: new TokenBucket(100, 1, '1h'), estimate: 60 },
      { name: 'streams', key: user, limit: new Concurrent(3, '1m') },
    ]
    const { gate, limiter } = gateOn(t, own.port, rules, { timeout: 150, fail: 'closed', breaker: null })
    await gate.ready()
    own.process.kill('SIGSTOP')
    const { refusal, headers } = await gate.enter({ user: 'ann' }, undefined)
    own.process.kill('SIGCONT')
    assert.deepEqual([refusal?.status, headers['Retry-After']], [503, '1'])
    const peek = async (key: string, ...words: string[]) => (await own.cli('RL.PEEK', limiter.core.settings.prefix + key, ...words, 'COST', '0')).split('\n')[2]
    await until(async () => (await peek('streams:ann', 'CONCURRENT', '3', '1m', 'x')) === '3', 'a release')
    await until(async () => (await peek('tokens:ann', 'TOKENBUCKET', '100', '1', '1h')) === '100', 'a settlement')
  })

  test('too many holds are as no answer, and the other rules are asked all the same', async (t) => {
    const own = await startServer(['--ratelimit.max-holds', '1'])
    t.after(() => own.stop())
    await own.cli('RL.POLICY', 'SET', 'llm', 'LIMIT', 'TOKENBUCKET', '100', '1', '1h')
    const bucket = new TokenBucket(100, 1, '1h')
    for (const budget of [{ limit: bucket }, { policy: 'llm' }]) {
      const rules = [
        { name: 'tokens', key: user, estimate: 1, ...budget } as Rule<Asking>,
        { name: 'api', key: user, policy: 'llm', cost: 100 },
      ]
      for (const fail of ['open', 'closed'] as const) {
        const { gate, limiter, lines, left } = gateOn(t, own.port, rules.slice(0, fail === 'open' ? 2 : 1), { fail })
        const first = await gate.enter({ user: 'ann' }, undefined)
        const second = await gate.enter({ user: 'ann' }, undefined)
        assert.deepEqual([first.refusal, second.refusal?.status], [undefined, fail === 'open' ? 429 : 503])
        assert.match(lines.join(), /ERR too many holds, for 'tokens…'; (not )?let through/)
        const { failedOpen, failedClosed } = limiter.counters
        assert.equal(failedOpen + failedClosed, 1)
        await Promise.all([first.end(), second.end()])
        assert.equal(await left('tokens:ann', 'TOKENBUCKET', 100, 1, '1h'), 99)
      }
      const { limiter } = gateOn(t, own.port, rules)
      const held = limiter.budget('ann', bucket)
      await held.hold(1, () => assert.rejects(held.hold(1), { name: 'CallError', reply: 'ERR too many holds' }))
    }
  })

  test('a lease that may come late is released at once, while the request goes on', async (t) => {
    const own = await startServer()
    t.after(() => own.stop())
    const { gate } = gateOn(t, own.port, [{ name: 'streams', key: user, limit: new Concurrent(3, '1m') }], { timeout: 150, breaker: null })
    await gate.ready()
    own.process.kill('SIGSTOP')
    const pass = await gate.enter({ user: 'ann' }, undefined).finally(() => own.process.kill('SIGCONT'))
    assert.equal(pass.refusal, undefined)
    const calls = async (name: string) => new RegExp(`cmdstat_${name}:calls=[1-9]`).test(await own.cli('INFO', 'commandstats'))
    await until(() => calls('rl.multi'), 'the call that timed out')
    await until(async () => (await own.cli('DBSIZE')).trim() === '0', 'a release')
    await pass.end()
  })

  test('what may be charged later is searched for, and what cannot be is not', async (t) => {
    const rules: Rule<Asking>[] = [
      { name: 'tokens', key: user, limit: new TokenBucket(9, 1, '1h'), estimate: 5 },
      { name: 'llm', key: team, policy: 'llm', estimate: 5, hold: '1m' },
    ]
    for (const maybeSent of [true, false]) {
      const { gate, limiter } = gateOn(t, 1, rules)
      const error = new Unavailable('RL.MULTI', 'timeout', 'no answer', maybeSent)
      const settled: object[] = []
      Object.assign(limiter, {
        verify: async () => true,
        limits: async () => new MultiDecision([0, 0, 0, 0, 0], [], undefined, error),
        ask: async () => new AskDecision([0, 0, 0, 0, 0], 0, undefined, undefined, error),
        settle: async (...[, , , options]: Parameters<RateLimiter['settle']>) => settled.push(options),
        settleAsk: async (...[, , , actual, options]: Parameters<RateLimiter['settleAsk']>) => settled.push({ ...options, actual }),
      })
      for (const asking of [{ user: 'ann' }, { team: 'red' }]) {
        const pass = await gate.enter(asking, undefined)
        pass.spent['llm'] = 3
        await pass.end()
      }
      const uncertain = [
        { within: '600000ms', certain: false, cost: 1 },
        { within: '60000ms', certain: false, leaseId: undefined, actual: 3 },
      ]
      assert.deepEqual(settled, maybeSent ? uncertain : [])
    }
  })

  test('an uncertain lease of a policy is searched for an hour, as its duration is not known', async (t) => {
    const { gate, limiter } = gateOn(t, 1, [{ name: 'api', key: user, policy: 'slots' }])
    const released: object[] = []
    Object.assign(limiter, {
      verify: async () => true,
      ask: async (...[, , { leaseId } = {}]: Parameters<RateLimiter['ask']>) => {
        if (leaseId === undefined) throw new CallError('RL.ASK', 'ERR a lease needs an ID')
        return new AskDecision([0, 0, 0, 0, 0], 0, undefined, undefined, new Unavailable('RL.ASK', 'timeout', 'no answer', true))
      },
      release: async (...[, , options]: Parameters<RateLimiter['release']>) => released.push(options),
    })
    await (await gate.enter({ user: 'ann' })).end()
    assert.deepEqual(released, [{ within: '1h', certain: false }])
  })
})
