/** Many calls at once, and a process that is busy: the server is not to blame. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { FixedWindow, Unavailable } from 'redis-ratelimit'
import { KINDS } from './kinds.js'
import { limiterOn } from './limiters.js'
import { startServer, until, type Server } from './servers.js'

const hour = new FixedWindow(1000, '1h')
const key = () => `user:${randomUUID()}`
const DEFAULTS = { timeout: undefined, connectTimeout: undefined }

/** Keeps the process busy. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

for (const kind of KINDS) {
  describe(`many calls with ${kind.name}`, () => {
    let server: Server
    before(async () => (server = await startServer()))
    after(() => server?.stop())

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

    test('a busy process does not open the breaker', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port, { ...DEFAULTS, breaker: { failures: 2 } })
      await limiter.limit(key(), hour)
      server.process.kill('SIGSTOP')
      const calls = Array.from({ length: 5 }, () => limiter.limit(key(), hour))
      await pause(5)
      block(400)
      const answers = await Promise.all(calls).finally(() => server.process.kill('SIGCONT'))
      for (const { error } of answers) assert(error instanceof Unavailable && error.kind === 'busy' && error.maybeSent)
      assert.match(answers[0]?.error?.message ?? '', /no answer within 100 ms, in which this process was busy$/)
      assert.equal(limiter.counters.breakerOpened, 0)
    })

    test('a connection that the server closed is replaced at once', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port)
      assert.equal((await limiter.limit(key(), hour)).answered, true)
      await server.cli('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
      await pause(100)
      assert.equal((await limiter.limit(key(), hour)).answered, true)
    })
  })
}
