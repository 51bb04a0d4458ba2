/** What is under way when a limiter is closed. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { eachKind, limiterOn } from './limiters.js'
import { proxyTo } from './proxy.js'
import { until } from './servers.js'

const key = () => `user:${randomUUID()}`
const CLOSED = { name: 'Closed', message: 'the limiter is closed' }

eachKind('the end of a limiter', (kind, server) => {
  test('comes after the replies to what is under way', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port, { timeoutMs: 20000 })
    await limiter.limit(key(), '9/h')
    const checked = await limiterOn(t, kind, server.port, { timeoutMs: 20000 })
    await checked.limiter.ready()
    server.process.kill('SIGSTOP')
    const calls = Array.from({ length: 3 }, () => limiter.limit(key(), '9/h'))
    const ready = checked.limiter.ready({ limits: ['9/h'] })
    // Until then its call is not sent.
    await new Promise(setImmediate)
    const closed = Promise.all([limiter.close(), checked.limiter.close()])
    setTimeout(() => server.process.kill('SIGCONT'), 100)
    assert((await Promise.all(calls)).every(({ answered }) => answered))
    assert.equal(await ready, true)
    await closed
    await assert.rejects(limiter.limit(key(), '9/h'), CLOSED)
  })

  test('comes after the first connection, if a call waits for it', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port, { timeoutMs: 20000, connectTimeoutMs: 20000 })
    const call = limiter.limit(key(), '9/h')
    await limiter.close()
    assert.equal((await call).answered, true)
  })

  test('ends waits at once', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port)
    const holder = await limiterOn(t, kind, server.port)
    const pool = key()
    const lease = { capacity: 1, ttl: '1m' }
    await holder.limiter.lease(pool, lease)
    const waits = assert.rejects(limiter.lease(pool, { ...lease, wait: '50s' }), CLOSED)
    const releases = async () => Number(/cmdstat_rl.release:calls=(\d+)/.exec(await server.cli('INFO', 'commandstats'))?.[1] ?? 0)
    const waiting = (count: number) => async () =>
      (await server.cli('INFO', 'ratelimit')).includes(`ratelimit_waiting:${count}`)
    await until(waiting(1), 'a wait')
    await limiter.close()
    await waits
    await until(waiting(0), 'an empty line')
    assert((await releases()) > 0, 'it may have been granted')
  })

  test('waits for a release that is under way, and not for all leases of a silent server', async (t) => {
    const lease = { capacity: 1, ttl: '1m' }
    const { limiter } = await limiterOn(t, kind, server.port)
    const pool = key()
    void (await limiter.lease(pool, lease)).release()
    await limiter.close()
    assert.equal((await server.cli('RL.PEEK', pool, 'CONCURRENT', '1', '1m', 'nobody')).split('\n')[2], '1')
    const silent = await limiterOn(t, kind, server.port, { timeoutMs: 150, connectTimeoutMs: 5000, breaker: { failures: 3 } })
    for (let i = 0; i < 20; i += 1) await silent.limiter.lease(key(), lease)
    server.process.kill('SIGSTOP')
    const began = performance.now()
    await silent.limiter.close().finally(() => server.process.kill('SIGCONT'))
    assert(performance.now() - began < 2000, 'one after the other would take 3 s')
  })

  test('ends waits whose connection is still opening', async (t) => {
    const proxy = await proxyTo(t, server.port)
    const { limiter } = await limiterOn(t, kind, proxy.port, { connectTimeoutMs: 20000 })
    const user = key()
    await limiter.limit(user, '1/h')
    const before = proxy.held()
    proxy.hold()
    const wait = assert.rejects(limiter.limit(user, '1/h', { wait: '3s' }), CLOSED)
    await until(async () => proxy.held() > before, 'a connection')
    const closed = limiter.close()
    setTimeout(() => proxy.release(), 100)
    await Promise.all([wait, closed])
  })

  test('refuses new calls at once, and may be asked for twice', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port)
    const call = limiter.limit(key(), '9/h')
    const closed = [limiter.close(), limiter.close()]
    await assert.rejects(limiter.limit(key(), '9/h'), CLOSED)
    await assert.rejects(limiter.lease(key(), { capacity: 1, ttl: '1m' }), CLOSED)
    assert.equal((await call).answered, true)
    await Promise.all(closed)
  })
})
