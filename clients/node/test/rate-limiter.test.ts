/** What a limiter is with each client: its keys, its connections, its commands. Rights show that it makes each call. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { eachKind, limiterOn } from './limiters.js'
import { startServer } from './servers.js'

const key = () => `user:${randomUUID()}`

eachKind('a limiter', (kind, server) => {
  test('has all commands, on its own connections', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port, { prefix: 'p:' })
    const own = key()
    assert.equal((await limiter.commands.gcra(own, 9, 10, '1h')).remaining, 9)
    assert.equal(await server.cli('EXISTS', `p:${own}`), '1\n')
    await assert.rejects(limiter.commands.gcra(own, 9, 10, '0'), { name: 'CallError', code: 'ERR', command: 'RL.GCRA' })
    assert.equal(limiter.counters.wrongCalls, 1)
    await server.cli('RL.SHED', 'p:shed', '0.5')
    assert.equal(
      await limiter.commands.fixedWindow('shed', 1, '1m').catch((error: Error) => error.message),
      `RL.FIXEDWINDOW at 127.0.0.1:${server.port}: WRONGTYPE the key holds SHED, not FIXEDWINDOW`,
    )
  })

  test('is not delayed by a slow command of the application', async (t) => {
    const { limiter, raw } = await limiterOn(t, kind, server.port)
    const own = key()
    await limiter.limit(own, '3/h')
    const slow = raw(['BLPOP', 'never', '2'])
    let isOver = false
    void slow.then(() => (isOver = true))
    await limiter.limit(own, '3/h')
    assert.equal(isOver, false)
    await slow
  })

  if (kind.hasKeyPrefix) {
    test('honours the keyPrefix of the client exactly once', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port, { prefix: 'p:' }, { keyPrefix: 'app:' })
      const own = key()
      await limiter.limit(own, '3/h')
      await limiter.limits([own], ['3/h'])
      assert.equal((await limiter.commands.ask(own, 'mail')).allowed, true)
      assert.deepEqual((await server.cli('KEYS', `*${own}*`)).trim().split('\n'), [`app:p:${own}`])
      await limiter.lease(`${own}:lease`, { capacity: 1, ttl: '30s', wait: '1s' }, async () => {
        assert.equal(await server.cli('EXISTS', `app:p:${own}:lease`), '1\n')
      })
    })
  }

  test('says at the start that the module is missing', async (t) => {
    const plain = await startServer([], { module: false })
    t.after(() => plain.stop())
    const { limiter } = await limiterOn(t, kind, plain.port)
    await assert.rejects(limiter.ready(), { name: 'ConfigurationError', message: /^the server has no module ratelimit/ })
    const { allowed, error } = await limiter.limit(key(), '10/s')
    assert.deepEqual([allowed, error?.kind, limiter.counters.misconfigured], [true, 'module', 2], 'ready has asked too')
  })
}, async (server) => {
  await server.cli('RL.POLICY', 'SET', 'mail', 'LIMIT', 'FIXEDWINDOW', '5', '1m', 'LIMIT', 'FIXEDWINDOW', '8', '1d')
})
