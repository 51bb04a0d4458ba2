/** Limits, several limits, policies, looks and refunds, with each client. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { AskDecision, Concurrent, FixedWindow, Limit, MultiDecision, Penalty, SlidingLog, TokenBucket } from 'redis-ratelimit'
import { KINDS } from './kinds.js'
import { limiterOn } from './limiters.js'
import { startServer, type Server } from './servers.js'

const key = () => `user:${randomUUID()}`

for (const kind of KINDS) {
  describe(`a limiter on ${kind.name}`, () => {
    let server: Server
    before(async () => {
      server = await startServer()
      await server.cli('RL.POLICY', 'SET', 'mail', 'LIMIT', 'FIXEDWINDOW', '5', '1m', 'LIMIT', 'FIXEDWINDOW', '8', '1d')
      await server.cli(
        'RL.POLICY',
        'SET',
        'team',
        'LIMIT',
        'FIXEDWINDOW',
        '10',
        '1m',
        'ON',
        '1',
        'LIMIT',
        'CONCURRENT',
        '1',
        '1m',
        'ON',
        '2',
      )
    })
    after(() => server?.stop())

    test('admits as often as the rate says, and then says when', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port)
      const own = key()
      const answers = []
      for (let call = 0; call < 4; call += 1) answers.push(await limiter.limit(own, '3/h'))
      assert.deepEqual(
        answers.map(({ allowed }) => allowed),
        [true, true, true, false],
      )
      assert.deepEqual(
        answers.map(({ remaining }) => remaining),
        [2, 1, 0, 0],
      )
      const last = answers[3]!
      assert(last.retryAfter !== null && last.retryAfter > 1_000_000 && last.retryAfter <= 1_200_000)
      assert.equal(last.headers('user')['RateLimit-Policy'], '"user";q=3;w=3600')
      assert.equal(last.headers('user')['Retry-After'], String(Math.ceil(last.retryAfter / 1000)))
      const { asked, allowed, refused } = limiter.counters
      assert.deepEqual([asked, allowed, refused], [4, 3, 1])
    })

    test('takes any limiter and a cost', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port)
      const own = key()
      const log = new SlidingLog(10, '1h')
      assert.equal((await limiter.limit(own, log, { cost: 8 })).remaining, 2)
      assert.equal((await limiter.limit(own, log, { cost: 3 })).allowed, false)
      assert.equal((await limiter.limit(own, log, { cost: 11 })).retryAfter, null)
      assert.equal((await limiter.peek(own, log, { cost: 2 })).allowed, true)
      assert.equal((await limiter.refund(own, log, { cost: 5 })).remaining, 7)
    })

    test('deletes a key of the module, and no other', async (t) => {
      const client = kind.hasKeyPrefix ? { keyPrefix: 'app:' } : {}
      const { limiter } = await limiterOn(t, kind, server.port, { cache: {} }, client)
      const own = key()
      for (const allowed of [true, false]) assert.equal((await limiter.limit(own, '1/h')).allowed, allowed)
      assert.deepEqual([await limiter.reset(own), await limiter.reset(own)], [true, false])
      assert.equal((await limiter.limit(own, '1/h')).allowed, true)
      await server.cli('SET', `${client.keyPrefix ?? ''}text`, 'a string')
      await assert.rejects(limiter.reset('text'), { name: 'CallError', code: 'WRONGTYPE' })
    })

    test('asks several limits, all or nothing', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port)
      const [user, pool] = [key(), key()]
      const limits = [new Limit('10/h', { on: 1 }), new Limit(new TokenBucket(2, 1, '1d'), { on: 2, cost: 2 })]
      const first = await limiter.limits([user, pool], limits)
      assert(first instanceof MultiDecision && first.allowed)
      const second = await limiter.limits([user, pool], limits)
      assert.deepEqual([second.allowed, second.each.map(({ allowed }) => allowed)], [false, [true, false]])
      assert.equal(second.each[1]?.headers('pool')['RateLimit-Policy'], '"pool";q=1;w=86400')
      assert.equal((await limiter.peek(user, '10/h', { cost: 0 })).remaining, 9, 'the second call charged nothing')
    })

    test('asks policies', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port)
      const own = key()
      const first = await limiter.ask(own, 'mail', { cost: 5, full: true })
      assert(first instanceof AskDecision)
      assert.deepEqual([first.allowed, first.binding, first.each?.length], [true, 1, 2])
      const second = await limiter.ask(own, 'mail')
      assert.deepEqual([second.allowed, second.binding, second.each], [false, 1, []])
      assert.equal((await limiter.peek(own, 'mail', { cost: 0 })).allowed, true)
      const leased = { leaseId: 'a', keys: [key()] }
      assert.equal((await limiter.ask(own, 'team', leased)).allowed, true)
      await limiter.release([own, ...leased.keys], 'a', { within: '1m' })
      assert.equal((await limiter.ask(own, 'team', { ...leased, leaseId: 'b' })).allowed, true)
    })

    test('settles what was held by hand', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port)
      const [own, limits] = [key(), [new TokenBucket(100, 1, '1d')]]
      await limiter.limits([own], limits, { cost: 80, hold: { id: 'h', ttl: '1m' } })
      await limiter.settle([own], limits, 'h', { cost: 30, within: '1m' })
      assert.equal((await limiter.peek(own, limits[0]!, { cost: 0 })).remaining, 70)
      await limiter.ask(own, 'mail', { cost: 4, hold: { id: 'm', ttl: '1m' } })
      await limiter.settleAsk(own, 'mail', 'm', 1, { within: '1m' })
      assert.equal((await limiter.peek(own, new FixedWindow(5, '1m'), { cost: 0 })).remaining, 4)
    })

    test('has all commands, on its own connections', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port, { prefix: 'p:' })
      const own = key()
      assert.equal((await limiter.commands.gcra(own, 9, 10, '1h')).remaining, 9)
      assert.equal(await server.cli('EXISTS', `p:${own}`), '1\n')
      await assert.rejects(limiter.commands.gcra(own, 9, 10, '0'), { name: 'CallError', code: 'ERR', command: 'RL.GCRA' })
      assert.equal(limiter.counters.wrongCalls, 1)
      await server.cli('RL.SHED', 'p:shed', '0.5')
      assert.equal(
        await limiter.commands.fixedWindow('shed', 1, '1m').catch((error: Error) => error.message),
        `RL.FIXEDWINDOW at 127.0.0.1:${server.port}: WRONGTYPE the key holds SHED, not FIXEDWINDOW`,
      )
    })

    test('is not delayed by a slow command of the application', async (t) => {
      const { limiter, raw } = await limiterOn(t, kind, server.port)
      const own = key()
      await limiter.limit(own, '3/h')
      const slow = raw(['BLPOP', 'never', '2'])
      let isOver = false
      void slow.then(() => (isOver = true))
      await limiter.limit(own, '3/h')
      assert.equal(isOver, false)
      await slow
    })

    if (kind.hasKeyPrefix) {
      test('honours the keyPrefix of the client exactly once', async (t) => {
        const { limiter } = await limiterOn(t, kind, server.port, { prefix: 'p:' }, { keyPrefix: 'app:' })
        const own = key()
        await limiter.limit(own, '3/h')
        await limiter.limits([own], ['3/h'])
        assert.equal((await limiter.commands.ask(own, 'mail')).allowed, true)
        assert.deepEqual((await server.cli('KEYS', `*${own}*`)).trim().split('\n'), [`app:p:${own}`])
        await limiter.lease(`${own}:lease`, { capacity: 1, ttl: '30s', wait: '1s' }, async () => {
          assert.equal(await server.cli('EXISTS', `app:p:${own}:lease`), '1\n')
        })
      })
    }

    test('checks limits and policies at the start', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port)
      const limits = [
        '10/s',
        new Concurrent(5, '30s', { reserved: 1 }),
        new Limit(new Concurrent(5, '30s', { critical: true }), { on: 3, shadow: true }),
        new Limit('5/m', { cost: 3 }),
        new Penalty(3, '1m', '1m'),
        new SlidingLog(5, '1m', { countrefused: true }),
      ]
      assert.equal(await limiter.ready({ limits, policies: ['mail', 'team'] }), true)
      assert.equal(await server.cli('KEYS', '*verify*'), '\n', 'nothing is charged')
    })

    test('says what is wrong at the start', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port)
      const refusal = (message: RegExp) => ({ name: 'ConfigurationError', message })
      await assert.rejects(limiter.ready({ limits: ['10/x'] }), refusal(/'10\/x' is no rate/))
      const many = new SlidingLog(2_000_000, '1m')
      await assert.rejects(
        limiter.ready({ limits: ['10/s', many] }),
        refusal(/^the limit SLIDINGLOG 2000000 1m is wrong: ERR limit must be/),
      )
      await assert.rejects(
        limiter.ready({ limits: [new Limit(new Concurrent(2_000_000, '1m'))] }),
        refusal(/CONCURRENT 2000000 1m is wrong/),
      )
      await assert.rejects(
        limiter.ready({ policies: ['mail', 'mial'] }),
        refusal(/^the policy 'mial' is wrong: ERR no such policy/),
      )
    })

    test('says at the start that the module is missing', async (t) => {
      const plain = await startServer([], { module: false })
      t.after(() => plain.stop())
      const { limiter } = await limiterOn(t, kind, plain.port)
      await assert.rejects(limiter.ready(), { name: 'ConfigurationError', message: /^the server has no module ratelimit/ })
      const { allowed, error } = await limiter.limit(key(), '10/s')
      assert.deepEqual([allowed, error?.kind, limiter.counters.misconfigured], [true, 'module', 2], 'ready has asked too')
    })

    test('is closed once and for all', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port)
      await limiter.limit(key(), '10/s')
      await limiter.close()
      await limiter.close()
      await assert.rejects(limiter.limit(key(), '10/s'), { name: 'Closed', message: 'the limiter is closed' })
    })
  })
}
