import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Redis } from 'ioredis'
import { Concurrent, RateLimiter, Smooth, TokenBucket } from 'redis-ratelimit'
import { Gate, type GateOptions, type Rule } from 'redis-ratelimit/gate'
import { gateOn, team, user, type Asking } from './gate-harness.js'
import { quiet } from './rate-limiter-flexible.clients.js'
import { startServer, until } from './servers.js'

describe('a gate with wrong rules, or without a server that answers', () => {
  test('rules are checked when they are made', () => {
    const limiter = new RateLimiter(quiet(new Redis(1, { lazyConnect: true })))
    const wrong: [object, RegExp][] = [
      [{ name: '', key: user, limit: '1/s' }, /'' is no name/],
      [{ name: 'ä', key: user, limit: '1/s' }, /'ä' is no name/],
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

  test('no request waits for a check of the rules, and ready names the rule that is wrong', async (t) => {
    const own = await startServer()
    t.after(() => own.stop())
    const { gate, limiter } = gateOn(t, own.port, [{ name: 'api', key: user, policy: 'later' }])
    await assert.rejects(gate.enter({ user: 'ann' }), { name: 'CallError', reply: /no such policy 'later'/ })
    await assert.rejects(limiter.ready(), { name: 'ConfigurationError', message: /rule 'api': .*no such policy 'later'/ })
    await own.cli('RL.POLICY', 'SET', 'later', 'LIMIT', 'GCRA', '9', '10', '1s')
    assert.equal(await limiter.ready(), true)
    assert.equal((await gate.enter({ user: 'ann' })).refusal, undefined)
  })

  test('rules that cannot be checked at the start are logged', async (t) => {
    const own = await startServer()
    await own.stop()
    const { limiter, lines } = gateOn(t, own.port, [{ name: 'api', key: team, policy: 'nobody' }], { timeoutMs: 200, breaker: null })
    assert.equal(await limiter.ready(), false)
    assert.match(lines.join(), /RL.ASKPEEK .*: not checked: connect ECONNREFUSED/)
    await assert.rejects(limiter.ready({ required: true }), { name: 'Unavailable' })
  })

  test('a server that hangs costs one time-out, whatever the number of questions', async (t) => {
    const own = await startServer()
    t.after(() => own.stop())
    await own.cli('RL.POLICY', 'SET', 'api', 'LIMIT', 'GCRA', '9', '10', '1s')
    const rules: Rule<Asking>[] = [{ name: 'rate', key: user, limit: '1/m' }, { name: 'api', key: user, policy: 'api' }]
    const { gate, limiter } = gateOn(t, own.port, rules, { timeoutMs: 100, breaker: null })
    await limiter.ready()
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
    const { gate, limiter } = gateOn(t, own.port, rules, { timeoutMs: 150, fail: 'closed', breaker: null })
    await limiter.ready()
    own.process.kill('SIGSTOP')
    const { refusal, headers } = await gate.enter({ user: 'ann' }, undefined)
    own.process.kill('SIGCONT')
    assert.deepEqual([refusal?.status, headers['Retry-After']], [503, '1'])
    const peek = async (key: string, ...words: string[]) => (await own.cli('RL.PEEK', limiter.connected.settings.prefix + key, ...words, 'COST', '0')).split('\n')[2]
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
        assert.match(lines.join(), /RL.\w+ 'tokens…' at .*: failed (open|closed): ERR too many holds/)
        const { failedOpen, failedClosed } = limiter.counters
        assert.equal(failedOpen + failedClosed, 1)
        await Promise.all([first.end(), second.end()])
        assert.equal(await left('tokens:ann', 'TOKENBUCKET', 100, 1, '1h'), 99)
      }
      const { limiter } = gateOn(t, own.port, rules)
      const held = limiter.budget('ann', bucket)
      const { decision } = await held.hold(1, () => held.hold(1))
      assert.equal(decision.error?.kind, 'holds')
    }
  })

  test('a lease that may come late is released at once, while the request goes on', async (t) => {
    const own = await startServer()
    t.after(() => own.stop())
    const { gate, limiter } = gateOn(t, own.port, [{ name: 'streams', key: user, limit: new Concurrent(3, '1m') }], { timeoutMs: 150, breaker: null })
    await limiter.ready()
    own.process.kill('SIGSTOP')
    const pass = await gate.enter({ user: 'ann' }, undefined).finally(() => own.process.kill('SIGCONT'))
    assert.equal(pass.refusal, undefined)
    const calls = async (name: string) => new RegExp(`cmdstat_${name}:calls=[1-9]`).test(await own.cli('INFO', 'commandstats'))
    await until(() => calls('rl.multi'), 'the call that timed out')
    await until(async () => (await own.cli('DBSIZE')).trim() === '0', 'a release')
    await pass.end()
  })

})
