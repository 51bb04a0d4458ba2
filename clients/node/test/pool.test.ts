/** A pool of clients of node-redis: it is asked for the options of its clients, and for nothing else. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KINDS, type MakeOptions } from './kinds.js'
import { asksItsClient, limiterOf, onServer } from './limiters.js'
import { until, type Server } from './servers.js'

for (const kind of KINDS) {
  const { pool } = kind
  if (pool === undefined) continue
  onServer(`a pool, ${kind.name}`, (server) => {
    const cli: Server['cli'] = (...words) => server.cli('--no-auth-warning', '-a', 'secret', ...words)
    const open = (options: MakeOptions = {}) => pool(server.port, { password: 'secret', ...options })
    // In version 5 it connects when it is asked.
    asksItsClient(kind, open, cli, kind.name.startsWith('node-redis 5') ? undefined : ["the pool's server", 'The client is closed'])

    test('is connected again after its connections are lost', async (t) => {
      const made = await open()
      t.after(() => made.close())
      const { limiter } = limiterOf(t, made, {})
      assert.equal((await limiter.limit('user:1', '9/h')).answered, true)
      await cli('CLIENT', 'KILL', 'TYPE', 'normal')
      await until(async () => (await limiter.limit('user:1', '9/h')).answered, 'an answer')
      assert(limiter.counters.unavailable <= 1)
    })
  }, (server) => server.cli('CONFIG', 'SET', 'requirepass', 'secret'))
}
