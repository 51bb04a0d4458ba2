/** Calls that wait in the server, with each client. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Commands, Unavailable } from 'redis-ratelimit'
import { eachKind, limiterOn } from './limiters.js'
import { until } from './servers.js'

const pool = () => `pool:${randomUUID()}`
const one = { capacity: 1, ttl: '1m' }

eachKind('waiting', (kind, server) => {
  const waiting = async () => Number(/ratelimit_waiting:(\d+)/.exec(await server.cli('INFO', 'ratelimit'))?.[1])
  const clients = async () => (await server.cli('CLIENT', 'LIST')).trim().split('\n').length
  const inLine = (count: number) => until(async () => (await waiting()) === count, `a line of ${count}`)

  test('a lease comes when another one is released, first come first served', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port)
    const key = pool()
    const first = await limiter.lease(key, one)
    const order: number[] = []
    const others = []
    for (const number of [1, 2, 3]) {
      others.push(limiter.lease(key, { ...one, wait: '20s' }, () => order.push(number)))
      await inLine(number)
    }
    assert.equal((await limiter.limit(pool(), '3/m')).allowed, true, 'others go on meanwhile')
    await first.release()
    await Promise.all(others)
    assert.deepEqual([order, limiter.counters.allowed], [[1, 2, 3], 5])
  })

  test('a wait may be longer than the time-out of other calls', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port, { timeoutMs: 150, connectTimeoutMs: 5000 })
    const key = pool()
    const first = await limiter.lease(key, one)
    setTimeout(() => void first.release(), 600)
    assert.equal(await limiter.lease(key, { ...one, wait: '20s' }, (lease) => lease.held), true)
  })

  test('a wait may be longer than the time-outs of the client of the application', async (t) => {
    const timeouts = { commandTimeout: 200, socketTimeout: 200 }
    const { limiter } = await limiterOn(t, kind, server.port, {}, timeouts)
    const key = pool()
    const first = await limiter.lease(key, one)
    const next = limiter.lease(key, { ...one, wait: '20s' })
    await inLine(1)
    await pause(600)
    assert.equal(await waiting(), 1)
    await first.release()
    assert.equal((await next).held, true)
  })

  if (kind.isIoredis) {
    test("raw commands on the application's client wait longer than its time-out, and are sent once", async (t) => {
      const key = pool()
      const made = await kind.client(server.port, { commandTimeout: 200 })
      t.after(() => made.close())
      await server.cli('RL.CONCURRENT', key, '1', '1m', 'first')
      const next = new Commands(made.redis).concurrent(key, 1, '1m', 'next', { block: '20s' })
      await inLine(1)
      await pause(600)
      assert.equal(await waiting(), 1)
      await server.cli('RL.RELEASE', key, 'first')
      assert.equal((await next).allowed, true)
    })
  }

  test('one wait too many has no answer, and opens no connection', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port, { maxWaits: 2 })
    const key = pool()
    const held = await limiter.lease(key, one)
    const others = [limiter.lease(key, { ...one, wait: '20s' }), limiter.lease(key, { ...one, wait: '20s' })]
    await inLine(2)
    const open = await clients()
    const third = await limiter.limit(key, '3/m', { wait: '20s' })
    assert.deepEqual([third.allowed, third.error?.kind, third.error?.maybeSent], [true, 'crowded', false])
    assert.match(third.error?.message ?? '', /2 calls wait already, the most by maxWaits$/)
    assert.equal(await clients(), open)
    await held.release()
    await Promise.all(others.map(async (other) => (await other).release()))
    assert.equal((await limiter.limit(pool(), '3/m', { wait: '20s' })).answered, true, 'there is room again')
  })

  test('waits on a server that is silent open the breaker', async (t) => {
    const breaker = { failures: 2, cooldownMs: 60000 }
    const { limiter } = await limiterOn(t, kind, server.port, { timeoutMs: 100, connectTimeoutMs: 200, breaker })
    await until(async () => (await limiter.limit(pool(), '3/m')).answered, 'a connection')
    server.process.kill('SIGSTOP')
    try {
      const opens = async () => (await limiter.limit(pool(), '3/m', { wait: '50ms' })).error?.kind === 'breaker'
      await until(opens, 'an open breaker')
    } finally {
      server.process.kill('SIGCONT')
    }
  })

  test('who gives up leaves the line, and the connection is closed', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port)
    const key = pool()
    const first = await limiter.lease(key, one)
    const before = await clients()
    const control = new AbortController()
    const waits = limiter.lease(key, { ...one, wait: '50s', signal: control.signal }, () => assert.fail('no work'))
    await inLine(1)
    control.abort()
    await assert.rejects(waits, { name: 'AbortError' })
    await inLine(0)
    await until(async () => (await clients()) <= before, 'an end of the connection')
    await first.release()
    assert.equal(await limiter.lease(key, one, () => 'free'), 'free')
  })

  test('who gives up while connecting waits nowhere', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port)
    const key = pool()
    await limiter.lease(key, one, async () => {
      const control = new AbortController()
      const waits = limiter.limit(key, '1/s', { wait: '50s', signal: control.signal })
      control.abort()
      await assert.rejects(waits, { name: 'AbortError' })
      await pause(100)
      assert.equal(await waiting(), 0)
    })
  })

  test('an end by the server is no answer', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port)
    const key = pool()
    await limiter.lease(key, one, async () => {
      const waits = limiter.lease(key, { ...one, wait: '50s' }, (lease) => lease.decision.error)
      await inLine(1)
      const id = /id=(\d+) .*flags=b/.exec(await server.cli('CLIENT', 'LIST'))?.[1] ?? ''
      await server.cli('CLIENT', 'UNBLOCK', id, 'ERROR')
      const error = await waits
      assert(error instanceof Unavailable && error.kind === 'UNBLOCKED')
      const killed = limiter.lease(key, { ...one, wait: '50s' }, (lease) => lease.decision.error)
      await inLine(1)
      const other = /id=(\d+) .*flags=b/.exec(await server.cli('CLIENT', 'LIST'))?.[1] ?? ''
      await server.cli('CLIENT', 'KILL', 'ID', other)
      const lost = await killed
      assert(lost instanceof Unavailable && lost.kind === 'connection' && lost.maybeSent)
    })
  })
})
