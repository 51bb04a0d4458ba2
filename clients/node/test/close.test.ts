/** What is under way when a limiter is closed. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { KINDS } from './kinds.js'
import { limiterOn } from './limiters.js'
import { startServer, until, type Server } from './servers.js'

const key = () => `user:${randomUUID()}`
const CLOSED = { name: 'RateLimitError', message: 'the limiter is closed' }

for (const kind of KINDS) {
  describe(`the end of a limiter, ${kind.name}`, () => {
    let server: Server
    before(async () => (server = await startServer()))
    after(() => server?.stop())

    test('comes after the replies to what is under way', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port, { timeout: '20s' })
      await limiter.limit(key(), '9/h')
      server.process.kill('SIGSTOP')
      const calls = Array.from({ length: 3 }, () => limiter.limit(key(), '9/h'))
      const closed = limiter.close()
      setTimeout(() => server.process.kill('SIGCONT'), 100)
      assert((await Promise.all(calls)).every(({ answered }) => answered))
      await closed
      await assert.rejects(limiter.limit(key(), '9/h'), CLOSED)
    })

    test('comes after the first connection, if a call waits for it', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port, { timeout: '20s', connectTimeout: '20s' })
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
      const waiting = (count: number) => async () =>
        (await server.cli('INFO', 'ratelimit')).includes(`ratelimit_waiting:${count}`)
      await until(waiting(1), 'a wait')
      await limiter.close()
      await waits
      await until(waiting(0), 'an empty line')
    })
  })
}
