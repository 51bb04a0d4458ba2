/** Leases and the end of their limiter, with each client. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { KINDS } from './kinds.js'
import { limiterOn } from './limiters.js'
import { startServer, until, type Server } from './servers.js'

const pool = () => `pool:${randomUUID()}`
const one = { capacity: 1, ttl: '1m' }
const CLOSED = { message: 'the limiter is closed' }
const QUICK = { timeoutMs: 150, connectTimeoutMs: 5000, breaker: null }

for (const kind of KINDS) {
  describe(`leases, closed with ${kind.name}`, () => {
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

    test('are released by close, as far as the server answers', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port, QUICK)
      const key = pool()
      const lease = await limiter.lease(key, one)
      server.process.kill('SIGSTOP')
      await lease.release().finally(() => server.process.kill('SIGCONT'))
      await limiter.close()
      await empty(key)
    })

    test('that are held are released by close, and neither renewed nor lost after it', async (t) => {
      const { limiter, lines } = await limiterOn(t, kind, server.port)
      const key = pool()
      const lease = await limiter.lease(key, { capacity: 1, ttl: '300ms' })
      await limiter.close()
      const [left, renewals] = [await held(key), await calls('rl.renew')]
      await pause(500)
      await lease.release()
      assert.deepEqual([left, lease.held, lease.lost, await lease.renew()], [0, false, false, false])
      assert.deepEqual([lines, await calls('rl.renew')], [[], renewals])
    })

    test('that are granted while close is under way are released, and their work does not begin', async (t) => {
      const { limiter, lines } = await limiterOn(t, kind, server.port)
      const key = pool()
      await limiter.limit(pool(), '9/h')
      let hasBegun = false
      const granted = assert.rejects(limiter.lease(key, one, () => void (hasBegun = true)), CLOSED)
      await limiter.close()
      await granted
      assert.deepEqual([await held(key), await calls('rl.concurrent') > 0, hasBegun, lines], [0, true, false, []])
    })

    test('are not all waited for by close if the server is silent', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port, { ...QUICK, breaker: { failures: 3 } })
      const keys = Array.from({ length: 20 }, pool)
      for (const key of keys) await limiter.lease(key, one)
      server.process.kill('SIGSTOP')
      const began = performance.now()
      await limiter.close().finally(() => server.process.kill('SIGCONT'))
      assert(performance.now() - began < 2000, 'one after the other would take 3 s')
    })

    test('that are waited for are released by close: they may have been granted', async (t) => {
      const [{ limiter, lines }, holder] = [await limiterOn(t, kind, server.port), await limiterOn(t, kind, server.port)]
      const key = pool()
      await holder.limiter.lease(key, one)
      const waits = assert.rejects(limiter.lease(key, { ...one, wait: '50s' }), CLOSED)
      await until(async () => (await server.cli('INFO', 'ratelimit')).includes('ratelimit_waiting:1'), 'a wait')
      const before = await calls('rl.release')
      await limiter.close()
      await waits
      assert((await calls('rl.release')) > before)
      assert.deepEqual([await held(key), lines], [1, []])
    })

    test('that are being released are released before the end', async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port)
      const key = pool()
      const lease = await limiter.lease(key, one)
      void lease.release()
      await limiter.close()
      assert.equal(await held(key), 0)
    })
  })
}
