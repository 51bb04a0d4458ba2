/** Many calls at once, and a process that is busy: the server is not to blame. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { FixedWindow, Unavailable } from 'redis-ratelimit'
import { eachKind, limiterOn } from './limiters.js'
import { proxyTo } from './proxy.js'
import { until } from './servers.js'

const hour = new FixedWindow(1000, '1h')
const key = () => `user:${randomUUID()}`
const PATIENT = { timeoutMs: 5000, connectTimeoutMs: 10000 }
const DEFAULTS = { timeoutMs: undefined, connectTimeoutMs: undefined }

/** Keeps the process busy. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

eachKind('many calls', (kind, server) => {
  test('500 calls at once on a new limiter are all answered', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port, DEFAULTS)
    const answers = await Promise.all(Array.from({ length: 500 }, () => limiter.limit(key(), hour)))
    assert.equal(answers.filter(({ answered }) => answered).length, 500)
  })

  test('200 waits at once are all answered, and their connections closed', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port, DEFAULTS)
    await limiter.limit(key(), hour)
    const clients = async () => (await server.cli('CLIENT', 'LIST')).trim().split('\n').length
    const before = await clients()
    const own = Array.from({ length: 50 }, key)
    const calls = Array.from({ length: 200 }, (_, i) => limiter.limit(own[i % 50]!, '1/200ms', { wait: '20s' }))
    const answers = await Promise.all(calls)
    assert.equal(answers.filter(({ answered, allowed }) => answered && allowed).length, 200)
    await until(async () => (await clients()) <= before, 'an end of connections')
  })

  test('replies that arrived while the process was busy count', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port, DEFAULTS)
    await Promise.all(Array.from({ length: 20 }, () => limiter.limit(key(), hour)))
    const calls = Array.from({ length: 20 }, () => limiter.limit(key(), hour))
    await pause(5)
    block(400)
    assert((await Promise.all(calls)).every(({ answered }) => answered))
    const sentLater = Array.from({ length: 20 }, () => limiter.limit(key(), hour))
    block(400)
    assert((await Promise.all(sentLater)).every(({ answered }) => answered))
    assert.deepEqual([limiter.counters.unavailable, limiter.counters.breakerOpened], [0, 0])
  })

  test('a process that is busy again and again does not open the breaker', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port, { ...PATIENT, timeoutMs: 250, breaker: { failures: 1 } })
    await until(async () => (await limiter.limit(key(), hour)).answered, 'a connection')
    const { unavailable } = limiter.counters
    for (let round = 0; round < 4; round += 1) {
      const calls = Array.from({ length: 5 }, () => limiter.limit(key(), hour))
      for (let tick = 0; tick < 3; tick += 1) {
        block(300)
        await new Promise(setImmediate)
      }
      assert((await Promise.all(calls)).every(({ answered }) => answered))
    }
    assert.equal(limiter.counters.unavailable, unavailable)
  })

  test('a silent server opens the breaker of a process that is busy now and then', async (t) => {
    const breaker = { failures: 2, cooldownMs: 60000 }
    const { limiter } = await limiterOn(t, kind, server.port, { ...PATIENT, timeoutMs: 250, breaker })
    await until(async () => (await limiter.limit(key(), hour)).answered, 'a connection')
    server.process.kill('SIGSTOP')
    const busy = setInterval(() => block(100), 150)
    try {
      const calls = Array.from({ length: 5 }, () => limiter.limit(key(), hour))
      for (const { error } of await Promise.all(calls)) {
        assert(error instanceof Unavailable && /^(timeout|connection)$/.test(error.kind) && error.maybeSent)
      }
      assert.equal(limiter.counters.breakerOpened, 0, 'the calls of one connection count once')
      const { error: again } = await limiter.limit(key(), hour)
      assert(again instanceof Unavailable && /^(timeout|connection)$/.test(again.kind) && !again.maybeSent)
      const { error } = await limiter.limit(key(), hour)
      assert(error instanceof Unavailable && error.kind === 'breaker')
    } finally {
      clearInterval(busy)
      server.process.kill('SIGCONT')
    }
  })

  test('5,000 calls at once do not fail by their own queue', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port, PATIENT)
    const calls = Array.from({ length: 5000 }, () => limiter.limit(key(), hour))
    assert((await Promise.all(calls)).every(({ answered }) => answered))
  })

  test('of more than 1,000 calls to a silent server the others are not sent', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port, { ...PATIENT, timeoutMs: 1000 })
    await until(async () => (await limiter.limit(key(), hour)).answered, 'a connection')
    server.process.kill('SIGSTOP')
    const calls = Array.from({ length: 1500 }, () => limiter.limit(key(), hour))
    const errors = (await Promise.all(calls).finally(() => server.process.kill('SIGCONT'))).map(({ error }) => error)
    const kinds = errors.map((error) => error instanceof Unavailable && `${error.kind} ${error.maybeSent}`)
    const count = (pattern: RegExp) => kinds.filter((kind) => pattern.test(String(kind))).length
    const sent = count(/^(timeout|connection) true$/)
    assert(sent >= 1000 && sent <= 1010, `${sent} sent`)
    assert.equal(sent + count(/^(timeout|connection|breaker) false$/), 1500)
  })

  test('connections for waits are opened a few at a time', async (t) => {
    const proxy = await proxyTo(t, server.port)
    const { limiter } = await limiterOn(t, kind, proxy.port, PATIENT)
    await limiter.limit(key(), hour)
    proxy.hold()
    const waits = Array.from({ length: 100 }, () => limiter.limit(key(), hour, { wait: '20s' }))
    await until(() => proxy.held() === 16, 'the first connections')
    await pause(100)
    assert.equal(proxy.held(), 16)
    proxy.release()
    assert((await Promise.all(waits)).every(({ answered }) => answered))
  })

  test('waits that get no connection do not open the breaker of a server that answers', async (t) => {
    const breaker = { failures: 2, cooldownMs: 60000 }
    const { limiter, raw } = await limiterOn(t, kind, server.port, { ...PATIENT, breaker })
    await limiter.limit(key(), hour)
    await raw(['CONFIG', 'SET', 'maxclients', '2'])
    try {
      const waits = Array.from({ length: 40 }, () => limiter.limit(key(), hour, { wait: '20s' }))
      assert((await Promise.all(waits)).filter(({ answered }) => !answered).length > 2)
    } finally {
      await raw(['CONFIG', 'SET', 'maxclients', '1000'])
    }
    assert.deepEqual([(await limiter.limit(key(), hour)).answered, limiter.counters.breakerOpened], [true, 0])
  })

  test('a server that accepts a new connection, and is silent, opens the breaker', async (t) => {
    const proxy = await proxyTo(t, server.port)
    const breaker = { failures: 2, cooldownMs: 100 }
    const { limiter } = await limiterOn(t, kind, proxy.port, { timeoutMs: 200, connectTimeoutMs: 1000, breaker })
    await until(async () => (await limiter.limit(key(), hour)).answered, 'a connection')
    const { breakerOpened } = limiter.counters
    proxy.hold()
    proxy.cut()
    await until(async () => (await limiter.limit(key(), hour)).error?.kind === 'breaker', 'an open breaker')
    assert(limiter.counters.breakerOpened > breakerOpened)
    proxy.release()
    await until(async () => (await limiter.limit(key(), hour)).answered, 'an answer')
  })

  test('a connection that the server closed is replaced at once', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port)
    assert.equal((await limiter.limit(key(), hour)).answered, true)
    await server.cli('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    await pause(100)
    assert.equal((await limiter.limit(key(), hour)).answered, true)
  })
})
