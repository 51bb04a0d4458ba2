/** A pool of clients of node-redis: it is asked for the options of its clients, and for nothing else. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { Commands } from 'redis-ratelimit'
import { KINDS } from './kinds.js'
import { limiterOf, works } from './limiters.js'
import { startServer, until, type Server } from './servers.js'

const key = () => `user:${randomUUID()}`

for (const { name, pool, hasKeyPrefix } of KINDS) {
  if (pool === undefined) continue
  describe(`a pool of ${name}`, () => {
    let server: Server
    before(async () => {
      server = await startServer()
      await server.cli('CONFIG', 'SET', 'requirepass', 'secret')
    })
    after(() => server?.stop())
    const cli = (...words: string[]) => server.cli('--no-auth-warning', '-a', 'secret', ...words)
    const connections = async () => (await cli('CLIENT', 'LIST')).trim().split('\n').length

    test('answers limits, leases and waits, and is closed without a trace', async (t) => {
      const made = await pool(server.port, { password: 'secret' })
      t.after(() => made.close())
      const before = await connections()
      const { limiter } = limiterOf(t, made, {})
      await works(limiter, cli)
      await limiter.close()
      await until(async () => (await connections()) === before, 'the end of all connections')
    })

    test('sends the commands of an application as it is', async (t) => {
      const made = await pool(server.port, { password: 'secret', ...(hasKeyPrefix ? { keyPrefix: 'app:' } : {}) })
      t.after(() => made.close())
      const user = key()
      const { limiter } = limiterOf(t, made, {})
      assert.equal((await new Commands(made.redis).gcra(user, 0, 1, '1h')).allowed, true)
      assert.equal((await limiter.limit(user, '1/h')).allowed, false)
      assert.equal((await cli('EXISTS', hasKeyPrefix ? `app:${user}` : user)).trim(), '1')
    })

    test('may be connected after the limiter was made', async (t) => {
      const made = await pool(server.port, { password: 'secret', isConnected: false })
      t.after(() => made.close())
      const { limiter } = limiterOf(t, made, {})
      const first = limiter.limit(key(), '1/h')
      await made.connect?.()
      assert.equal((await first).answered, true)
    })

    // In version 5 it connects when it is asked.
    const skip = name.startsWith('node-redis 5')
    test('that is not connected is no answer', { skip }, async (t) => {
      const made = await pool(server.port, { password: 'secret', isConnected: false })
      t.after(() => made.close())
      const { limiter } = limiterOf(t, made, { connectTimeoutMs: 100, timeoutMs: 100, breaker: null })
      const { answered, error } = await limiter.limit(key(), '1/h')
      assert.deepEqual([answered, error?.kind, error?.node, error?.maybeSent], [false, 'connection', "the pool's server", false])
      assert.equal(error?.reason, 'The client is closed')
      await made.connect?.()
      await until(async () => (await limiter.limit(key(), '1/h')).answered, 'an answer')
    })

    test('is connected again after its connections are lost', async (t) => {
      const made = await pool(server.port, { password: 'secret' })
      t.after(() => made.close())
      const { limiter } = limiterOf(t, made, {})
      assert.equal((await limiter.limit(key(), '1/h')).answered, true)
      await cli('CLIENT', 'KILL', 'TYPE', 'normal')
      await until(async () => (await limiter.limit(key(), '1/h')).answered, 'an answer')
      assert(limiter.counters.unavailable <= 1)
    })
  })
}
