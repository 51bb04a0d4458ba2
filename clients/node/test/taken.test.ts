/** Leases and holds on real servers, with each client: time, signals, losses. The contract's cases show their calls. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { test } from 'node:test'
import { Refused, TokenBucket, type Hold } from 'redis-ratelimit'
import { eachKind, limiterOn } from './limiters.js'
import { until } from './servers.js'

const fresh = () => `pool:${randomUUID()}`
const one = { capacity: 1, ttl: '1m' }
const bucket = new TokenBucket(1000, 1, '1d')
const QUICK = { timeoutMs: 150, connectTimeoutMs: 5000, breaker: null }

eachKind('what is taken', (kind, server) => {
  const peek = async (key: string, ...limit: string[]) => Number((await server.cli('RL.PEEK', key, ...limit, 'COST', '0')).split('\n')[2])
  /** The number of leases that are held. */
  const held = async (key: string) => 100 - (await peek(key, 'CONCURRENT', '100', '1m', 'nobody'))
  const left = (key: string) => peek(key, 'TOKENBUCKET', '1000', '1', '1d')
  const holds = async (key: string) => Number(/holds\n(\d+)/.exec(await server.cli('RL.INFO', key))?.[1] ?? 0)
  const calls = async (command: string) =>
    Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(await server.cli('INFO', 'commandstats'))?.[1] ?? 0)
  const empty = (key: string) => until(async () => (await held(key)) === 0, 'a release')
  const settled = (key: string, rest: number) =>
    until(async () => (await left(key)) === rest && (await holds(key)) === 0, 'a settlement')

  test('a place is held, and an estimate charged, while the work is done', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port)
    const [key, tokens] = [fresh(), fresh()]
    const result = await limiter.lease(key, one, async (lease) => {
      assert.deepEqual([lease.held, lease.lost, lease.key, lease.decision.limit, await held(key)], [true, false, key, 1, 1])
      await assert.rejects(limiter.lease(key, one, () => assert.fail('refused')), Refused)
      return limiter.budget(tokens, bucket).hold(800, async (hold) => {
        assert.deepEqual([hold.estimate, hold.decision.remaining, await left(tokens), await holds(tokens)], [800, 200, 200, 1])
        hold.settle(300)
        return 'done'
      })
    })
    assert.deepEqual([result, await held(key), await left(tokens), await holds(tokens)], ['done', 0, 700, 0])
  })

  test('work that fails is charged what it counted, and the caller gets its error', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port)
    const [key, tokens] = [fresh(), fresh()]
    const counted = (hold: Hold) => {
      hold.settle(50)
      return Promise.reject(new Error('half way'))
    }
    await assert.rejects(limiter.lease(key, one, () => limiter.budget(tokens, bucket).hold(800, counted)), /^Error: half way$/)
    const failed = () => {
      throw new Error('at once')
    }
    await assert.rejects(limiter.lease(key, one, () => limiter.budget(tokens, bucket).hold(800, failed)), /^Error: at once$/)
    assert.deepEqual([await held(key), await left(tokens), await holds(tokens)], [0, 950, 0])
  })

  test('objects end by themselves, and once', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port)
    const [key, tokens] = [fresh(), fresh()]
    {
      await using lease = await limiter.lease(key, { ...one, cost: 1, reserved: 0, critical: true })
      await using hold = await limiter.budget(tokens, bucket).hold(800)
      hold.settle(10)
      assert.deepEqual([lease.held, await held(key)], [true, 1])
    }
    const [lease, hold] = [await limiter.lease(key, one), await limiter.budget(tokens, bucket).hold(800)]
    await Promise.all([lease.release(), lease.release(), hold.cancel(), hold.end()])
    assert.deepEqual([await held(key), await left(tokens), await holds(tokens), limiter.counters.unavailable], [0, 990, 0, 0])
  })

  test('leases say that they are lost', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port)
    const key = fresh()
    await limiter.lease(key, { capacity: 1, ttl: '300ms' }, async (lease) => {
      assert.equal(lease.signal.aborted, false)
      const stopped = once(lease.signal, 'abort')
      await server.cli('DEL', key)
      await stopped
      assert.match(String(lease.signal.reason), /the lease is lost: a renewal found no lease/)
      assert.deepEqual([lease.lost, lease.held], [true, false])
    })
  })

  test('a lease that comes late is released while the work goes on', async (t) => {
    const { limiter, lines } = await limiterOn(t, kind, server.port, QUICK)
    const [key, renewals] = [fresh(), await calls('rl.renew')]
    await limiter.limit(fresh(), '1/s')
    server.process.kill('SIGSTOP')
    const lease = await limiter.lease(key, { capacity: 1, ttl: '1m' }).finally(() => server.process.kill('SIGCONT'))
    await until(async () => (await calls('rl.concurrent')) > 0 && (await held(key)) === 0, 'a release')
    assert.deepEqual([lease.held, await lease.renew(), lease.lost, await calls('rl.renew')], [false, false, false, renewals])
    const releases = limiter.counters.unavailable
    await lease.release()
    assert.deepEqual([limiter.counters.unavailable, lines.some((line) => /renewed|lost/.test(line))], [releases, false])
  })

  test('what is given up while it is taken comes back', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port)
    const [key, tokens, before] = [fresh(), fresh(), await calls('rl.release')]
    await limiter.commands.tokenBucket(tokens, 1000, 1, '1d', { cost: 5 })
    const control = new AbortController()
    const { signal } = control
    server.process.kill('SIGSTOP')
    const taken = [limiter.lease(key, { ...one, signal }, () => assert.fail('no work')), limiter.budget(tokens, bucket).hold(800, { signal })]
    setTimeout(() => control.abort(), 50)
    const errors = await Promise.allSettled(taken).finally(() => server.process.kill('SIGCONT'))
    assert(errors.every((error) => error.status === 'rejected' && (error.reason as Error).name === 'AbortError'))
    await until(async () => (await calls('rl.release')) > before, 'a release')
    await empty(key)
    await settled(tokens, 995)
  })

  test('what ends while the server is slow is ended later', async (t) => {
    const { limiter, lines } = await limiterOn(t, kind, server.port, QUICK)
    const [key, tokens] = [fresh(), fresh()]
    const [lease, hold] = [await limiter.lease(key, one), await limiter.budget(tokens, bucket).hold(800)]
    hold.settle(1)
    server.process.kill('SIGSTOP')
    const began = performance.now()
    await Promise.all([lease.release(), hold.end()]).finally(() => server.process.kill('SIGCONT'))
    assert(performance.now() - began < 2000, 'the caller does not wait')
    await empty(key)
    await settled(tokens, 999)
    assert(lines.some((line) => /RL.RELEASE 'pool…' at .*: repeated in the background: no reply within 150 ms/.test(line)))
  })

  test('what is given up before it is asked for is not asked for', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port)
    const signal = AbortSignal.abort()
    await assert.rejects(limiter.lease(fresh(), { ...one, signal }), { name: 'AbortError' })
    await assert.rejects(limiter.budget(fresh(), '9/h').hold(1, { signal }), { name: 'AbortError' })
    assert.equal(limiter.counters.asked, 0)
  })
})
