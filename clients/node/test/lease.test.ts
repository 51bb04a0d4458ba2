/** Leases on every path, with each client. */

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Concurrent, Refused, Unavailable, type Lease } from 'redis-ratelimit'
import { KINDS } from './kinds.js'
import { limiterOn } from './limiters.js'
import { startServer, until, type Server } from './servers.js'

const pool = () => `pool:${randomUUID()}`
const one = { capacity: 1, ttl: '1m' }
const QUICK = { timeoutMs: 150, connectTimeoutMs: 5000, breaker: null }

for (const kind of KINDS) {
  describe(`leases with ${kind.name}`, () => {
    let server: Server
    before(async () => (server = await startServer()))
    after(() => server?.stop())

    /** The number of leases that are held. */
    const held = async (key: string) => {
      const [, , left] = (await server.cli('RL.PEEK', key, 'CONCURRENT', '100', '1m', 'nobody', 'COST', '0')).split('\n')
      return 100 - Number(left)
    }
    const calls = async (command: string) =>
      Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(await server.cli('INFO', 'commandstats'))?.[1] ?? 0)
    const empty = (key: string) => until(async () => (await held(key)) === 0, 'a release')

    test('hold a place while the work is done', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port)
      const key = pool()
      const result = await limiter.lease(key, one, async (lease) => {
        assert.deepEqual([lease.held, lease.lost, lease.key, lease.decision.limit, await held(key)], [true, false, key, 1, 1])
        const refusal = await limiter.lease(key, one, () => assert.fail('refused')).catch((error: Refused) => error)
        assert(refusal instanceof Refused && !refusal.decision.allowed && refusal.decision.retryAfter! > 50_000)
        return 'done'
      })
      assert.deepEqual([result, await held(key)], ['done', 0])
      const { asked, allowed, refused } = limiter.counters
      assert.deepEqual([asked, allowed, refused], [2, 1, 1])
    })

    test('are released when the work fails', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port)
      const key = pool()
      await assert.rejects(
        limiter.lease(key, one, () => Promise.reject(new Error('failed'))),
        /^Error: failed$/,
      )
      assert.equal(await held(key), 0)
      await assert.rejects(
        limiter.lease(key, one, () => {
          throw new Error('at once')
        }),
        /^Error: at once$/,
      )
      assert.equal(await held(key), 0)
    })

    test('may be objects that end by themselves', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port)
      const key = pool()
      {
        await using lease = await limiter.lease(key, { ...one, cost: 1, reserved: 0, critical: true })
        assert.deepEqual([lease.held, await held(key)], [true, 1])
      }
      assert.equal(await held(key), 0)
      const lease = await limiter.lease(key, one)
      await Promise.all([lease.release(), lease.release()])
      assert.deepEqual([await held(key), limiter.counters.unavailable], [0, 0])
    })

    test('are renewed until the work is done', async (t) => {
      const { limiter, lines } = await limiterOn(t, kind, server.port)
      const key = pool()
      await limiter.lease(key, { capacity: 1, ttl: '600ms' }, async (lease) => {
        await pause(1500)
        assert.deepEqual([lease.held, lease.lost, await held(key)], [true, false, 1])
      })
      assert.deepEqual([await held(key), lines], [0, []])
    })

    test('are not renewed if nobody wants that', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port)
      const key = pool()
      await limiter.lease(key, { capacity: 1, ttl: '100ms', renew: false }, async (lease) => {
        await until(async () => (await held(key)) === 0, 'an end')
        assert.deepEqual([lease.lost, await lease.renew(), lease.lost], [false, false, true])
      })
    })

    test('say that they are lost', async (t) => {
      const { limiter, lines } = await limiterOn(t, kind, server.port)
      const key = pool()
      await limiter.lease(key, { capacity: 1, ttl: '300ms' }, async (lease) => {
        assert.equal(lease.signal.aborted, false)
        const stopped = once(lease.signal, 'abort')
        await server.cli('DEL', key)
        await until(() => lease.lost, 'a loss')
        await stopped
        assert.match(String(lease.signal.reason), /the lease is lost: a renewal found no lease/)
        assert.equal(lease.held, false)
      })
      assert.equal(limiter.counters.leasesLost, 1)
      assert.match(lines[0] ?? '', /RL.RENEW 'pool…' at 127.0.0.1:\d+: lease lost: a renewal found no lease$/)
    })

    test('are lost if they cannot be renewed', async (t) => {
      const { limiter, lines } = await limiterOn(t, kind, server.port)
      const key = pool()
      await limiter.lease(key, { capacity: 1, ttl: '600ms' }, async (lease) => {
        await server.cli('SET', key, 'a text')
        await until(() => lease.lost, 'a loss')
      })
      assert(lines.some((line) => /RL.RENEW 'pool…' at .*: lease lost: WRONGTYPE/.test(line)))
      assert.deepEqual([limiter.counters.leasesLost, lines.some((line) => line.includes(key))], [1, false])
    })

    test('are released also if they could not be renewed', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port)
      const key = pool()
      await limiter.lease(key, { capacity: 1, ttl: '3s' }, async (lease) => {
        await server.cli('ACL', 'SETUSER', 'default', '-rl.renew')
        await until(() => lease.lost, 'a loss')
        assert.deepEqual([lease.held, await held(key)], [false, 1], 'the server has it still')
      }).finally(() => server.cli('ACL', 'SETUSER', 'default', '+rl.renew'))
      assert.equal(await held(key), 0)
    })

    test('are lost if no renewal comes through for a whole ttl', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port, QUICK)
      const lease = await limiter.lease(pool(), { capacity: 1, ttl: '900ms' })
      server.process.kill('SIGSTOP')
      await until(() => lease.lost, 'a loss').finally(() => server.process.kill('SIGCONT'))
      await lease.release()
    })

    test('without an answer, open: the work is done, and what was taken is released', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port, QUICK)
      const [key, before] = [pool(), await calls('rl.release')]
      await limiter.limit(pool(), '1/s')
      server.process.kill('SIGSTOP')
      const done = await limiter
        .lease(key, one, (lease) => {
          assert(lease.decision.error instanceof Unavailable)
          return [lease.held, lease.lost, lease.decision.allowed]
        })
        .finally(() => server.process.kill('SIGCONT'))
      assert.deepEqual(done, [false, false, true])
      await until(async () => (await calls('rl.release')) > before, 'a release')
      await empty(key)
      assert.deepEqual([limiter.counters.failedOpen, await limiter.lease(key, one, () => 'again')], [1, 'again'])
    })

    test('without an answer, open: a lease that comes late is released while the work goes on', async (t) => {
      const { limiter, lines } = await limiterOn(t, kind, server.port, QUICK)
      const [key, renewals] = [pool(), await calls('rl.renew')]
      await limiter.limit(pool(), '1/s')
      server.process.kill('SIGSTOP')
      const lease = await limiter.lease(key, { capacity: 1, ttl: '1m' }).finally(() => server.process.kill('SIGCONT'))
      await until(async () => (await calls('rl.concurrent')) > 0 && (await held(key)) === 0, 'a release')
      assert.deepEqual([lease.held, await lease.renew(), lease.lost, await calls('rl.renew')], [false, false, false, renewals])
      const releases = limiter.counters.unavailable
      await lease.release()
      assert.deepEqual([limiter.counters.unavailable, lines.some((line) => /renewed|lost/.test(line))], [releases, false])
    })

    test('without an answer, closed: no work, and what was taken is released', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port, { ...QUICK, fail: 'closed' })
      const [key, before] = [pool(), await calls('rl.release')]
      await limiter.limit(pool(), '1/s')
      server.process.kill('SIGSTOP')
      await assert
        .rejects(
          limiter.lease(key, one, () => assert.fail('no work')),
          { name: 'Unavailable' },
        )
        .finally(() => server.process.kill('SIGCONT'))
      await until(async () => (await calls('rl.release')) > before, 'a release')
      await empty(key)
      assert.deepEqual([limiter.counters.failedClosed, await limiter.lease(key, one, () => 'again')], [1, 'again'])
    })

    test('given up while they are taken, are released', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port, { ...QUICK, timeoutMs: 5000 })
      const [key, before] = [pool(), await calls('rl.release')]
      await limiter.limit(pool(), '1/s')
      const control = new AbortController()
      server.process.kill('SIGSTOP')
      const taken = limiter.lease(key, { ...one, signal: control.signal }, () => assert.fail('no work'))
      setTimeout(() => control.abort(), 50)
      await assert.rejects(taken, { name: 'AbortError' }).finally(() => server.process.kill('SIGCONT'))
      await until(async () => (await calls('rl.release')) > before, 'a release')
      await empty(key)
      assert.equal(await limiter.lease(key, one, () => 'again'), 'again')
    })

    test('are released later if the server is slow just then', async (t) => {
      const { limiter, lines } = await limiterOn(t, kind, server.port, QUICK)
      const key = pool()
      const lease = await limiter.lease(key, one)
      server.process.kill('SIGSTOP')
      const began = performance.now()
      await lease.release().finally(() => server.process.kill('SIGCONT'))
      assert(performance.now() - began < 2000, 'the caller does not wait')
      await empty(key)
      await until(() => limiter.counters.releasesRetried > 0, 'a repetition')
      assert(lines.some((line) => /RL.RELEASE 'pool…' at .*: repeated in the background: no reply within 150 ms/.test(line)))
    })

    test('that were not asked for are not released', async (t) => {
      const { limiter } = await limiterOn(t, kind, 1, QUICK)
      await limiter.lease(pool(), one, (lease: Lease) => assert.equal(lease.held, false))
      assert.deepEqual([limiter.counters.unavailable, limiter.counters.releasesRetried], [1, 0])
    })

    test('given up before they are asked for are not asked for', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port)
      const signal = AbortSignal.abort()
      await assert.rejects(limiter.lease(pool(), { ...one, signal }), { name: 'AbortError' })
      await assert.rejects(limiter.budget(pool(), '9/h').hold(1, { signal }), { name: 'AbortError' })
      assert.equal(limiter.counters.asked, 0)
    })

    test('of a call with several limits are released by hand', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port)
      const [a, b] = [pool(), pool()]
      await limiter.limits([a, b], [new Concurrent(5, '1m', { id: 'r1' })])
      assert.deepEqual([await held(a), await held(b)], [1, 1])
      await limiter.release([a, b], 'r1', { within: '1m' })
      assert.deepEqual([await held(a), await held(b)], [0, 0])
      await assert.rejects(limiter.release(a, 'r1', { within: '0' }), { name: 'ConfigurationError' })
    })
  })
}
