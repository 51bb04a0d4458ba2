/** Budgets and their holds on every path, with each client. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { Refused, TokenBucket, Unavailable, type Hold } from 'redis-ratelimit'
import { KINDS } from './kinds.js'
import { limiterOn } from './limiters.js'
import { startServer, until, type Server } from './servers.js'

const bucket = new TokenBucket(1000, 1, '1d')
const QUICK = { timeoutMs: 150, connectTimeoutMs: 5000, breaker: null }
const user = () => `llm:${randomUUID()}`

for (const kind of KINDS) {
  describe(`holds with ${kind.name}`, () => {
    let server: Server
    before(async () => {
      server = await startServer()
      await server.cli(
        'RL.POLICY',
        'SET',
        'llm',
        'LIMIT',
        'TOKENBUCKET',
        '1000',
        '1',
        '1d',
        'LIMIT',
        'GCRA',
        '9',
        '10',
        '1m',
        'COST',
        '1',
      )
      await server.cli('RL.POLICY', 'SET', 'team', 'LIMIT', 'TOKENBUCKET', '1000', '1', '1d', 'ON', '2')
    })
    after(() => server?.stop())

    const left = async (key: string) =>
      Number((await server.cli('RL.PEEK', key, 'TOKENBUCKET', '1000', '1', '1d', 'COST', '0')).split('\n')[2])
    const holds = async (key: string) => Number(/holds\n(\d+)/.exec(await server.cli('RL.INFO', key))?.[1] ?? 0)
    const settled = (key: string, rest: number) =>
      until(async () => (await left(key)) === rest && (await holds(key)) === 0, 'a settlement')

    test('charge the estimate, and in the end the actual cost', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port)
      const key = user()
      const answer = await limiter.budget(key, bucket).hold(800, async (hold) => {
        assert.deepEqual([hold.estimate, hold.decision.remaining, await left(key), await holds(key)], [800, 200, 200, 1])
        hold.settle(100)
        hold.settle(300)
        assert.equal(await left(key), 200, 'nothing is sent before the end')
        return 'answer'
      })
      assert.deepEqual([answer, await left(key), await holds(key)], ['answer', 700, 0])
    })

    test('may cost more than estimated', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port)
      const key = user()
      await limiter.budget(key, bucket).hold(800, (hold) => hold.settle(1200))
      assert.equal(await left(key), 0)
    })

    test('keep the estimate if nothing was counted', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port)
      const key = user()
      await limiter.budget(key, bucket).hold(800, () => undefined)
      assert.deepEqual([await left(key), await holds(key)], [200, 0])
    })

    test('cost nothing if the work fails, unless it counted', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port)
      const key = user()
      const budget = limiter.budget(key, bucket)
      await assert.rejects(
        budget.hold(800, () => {
          throw new Error('failed')
        }),
        /^Error: failed$/,
      )
      assert.deepEqual([await left(key), await holds(key)], [1000, 0])
      const counted = (hold: Hold) => {
        hold.settle(50)
        return Promise.reject(new Error('half way'))
      }
      await assert.rejects(budget.hold(800, counted), /^Error: half way$/)
      assert.deepEqual([await left(key), await holds(key)], [950, 0])
    })

    test('are refused if the estimate does not fit', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port)
      const key = user()
      const budget = limiter.budget(key, bucket)
      await budget.hold(800, async () => {
        const refusal = await budget.hold(300, () => assert.fail('refused')).catch((error: Refused) => error)
        assert(refusal instanceof Refused && refusal.decision.remaining === 200)
      })
      await assert.rejects(budget.hold(1001), { name: 'Refused', message: 'refused, and will never be admitted' })
    })

    test('may be objects that end by themselves', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port)
      const key = user()
      const budget = limiter.budget(key, bucket)
      {
        await using hold = await budget.hold(800)
        hold.settle(10)
      }
      assert.equal(await left(key), 990)
      const hold = await budget.hold(800)
      await hold.cancel()
      await hold.end()
      assert.deepEqual([await left(key), await holds(key)], [990, 0])
      assert.throws(() => hold.settle(-1), { name: 'ConfigurationError' })
    })

    test('of a policy', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port)
      const [key, other] = [user(), user()]
      await limiter.budget(key, 'llm').hold(800, (hold) => hold.settle(300))
      assert.deepEqual([await left(key), await holds(key)], [700, 0])
      await assert.rejects(limiter.budget(key, 'llm').hold(800), { name: 'Refused' })
      await limiter.budget(key, 'team', { keys: [other], ttl: '1m' }).hold(800, (hold) => hold.settle(1))
      assert.equal(await left(other), 999)
      await assert.rejects(limiter.budget(key, 'none').hold(1), { name: 'CallError', message: /no such policy/ })
    })

    test('wait until the estimate fits', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port)
      const key = user()
      const quick = new TokenBucket(100, 1000, '1s')
      await limiter.commands.tokenBucket(key, 100, 1000, '1s', { cost: 300, force: true })
      const budget = limiter.budget(key, quick)
      await assert.rejects(budget.hold(100), { name: 'Refused' })
      await budget.hold(100, { wait: '20s' }, (hold) => assert(hold.decision.answered))
    })

    test('without an answer, open: the work is done, and settled all the same', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port, QUICK)
      const key = user()
      await limiter.limit(user(), '1/s')
      server.process.kill('SIGSTOP')
      const work = (hold: Hold) => {
        assert(hold.decision.error instanceof Unavailable && hold.decision.allowed)
        hold.settle(30)
        return 'done'
      }
      const done = await limiter
        .budget(key, bucket)
        .hold(800, work)
        .finally(() => server.process.kill('SIGCONT'))
      assert.equal(done, 'done')
      await settled(key, 970)
    })

    test('without an answer, closed: no work, and what was charged comes back', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port, { ...QUICK, fail: 'closed' })
      const key = user()
      await limiter.commands.tokenBucket(key, 1000, 1, '1d', { cost: 5 })
      server.process.kill('SIGSTOP')
      await assert
        .rejects(
          limiter.budget(key, bucket).hold(800, () => assert.fail('no work')),
          { name: 'Unavailable' },
        )
        .finally(() => server.process.kill('SIGCONT'))
      await settled(key, 995)
    })

    test('given up while they are charged, come back', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port)
      const key = user()
      await limiter.commands.tokenBucket(key, 1000, 1, '1d', { cost: 5 })
      const control = new AbortController()
      server.process.kill('SIGSTOP')
      const held = limiter.budget(key, bucket).hold(800, { signal: control.signal })
      setTimeout(() => control.abort(), 50)
      await assert.rejects(held, { name: 'AbortError' }).finally(() => server.process.kill('SIGCONT'))
      await settled(key, 995)
    })

    test('are settled later if the server is slow just then', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port, QUICK)
      const key = user()
      const hold = await limiter.budget(key, bucket).hold(800)
      hold.settle(1)
      server.process.kill('SIGSTOP')
      await hold.end().finally(() => server.process.kill('SIGCONT'))
      await settled(key, 999)
    })

    test('that were not asked for are not settled', async (t) => {
      const { limiter } = await limiterOn(t, kind, 1, QUICK)
      await limiter.budget(user(), 'llm').hold(800, (hold) => hold.settle(5))
      assert.deepEqual([limiter.counters.unavailable, limiter.counters.releasesRetried], [1, 0])
    })
  })
}
