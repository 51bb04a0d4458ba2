/**
 * What went wrong when the first users tried this without a package: one slow moment of the server, and leases stayed until
 * their ttl.
 */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { RateLimiter } from 'redis-ratelimit'
import { eachKind } from './limiters.js'
import { until } from './servers.js'

eachKind('with and the defaults', (kind, server) => {
  test('after a slow moment an idle user gets a lease again at once', async (t) => {
    const { redis, close } = await kind.client(server.port)
    const lines: string[] = []
    const limiter = new RateLimiter(redis, { logger: (line) => lines.push(line) })
    t.after(async () => {
      await limiter.close()
      close()
    })
    const key = `user:${randomUUID()}`
    const five = { capacity: 5, ttl: '30s' }
    assert.equal(await limiter.ready({ required: true }), true)
    server.process.kill('SIGSTOP')
    const began = performance.now()
    const work = () => limiter.lease(key, five, ({ held }) => held)
    const held = await Promise.all([work(), work(), work(), work(), work()])
    assert.deepEqual(held, [false, false, false, false, false], 'they fail open')
    await pause(300)
    server.process.kill('SIGCONT')
    const inUse = async () =>
      5 - Number((await server.cli('RL.PEEK', key, 'CONCURRENT', '5', '30s', 'x', 'COST', '0')).split('\n')[2])
    await until(
      async () => await limiter.lease(key, { ...five, cost: 5 }, (lease) => lease.held).catch(() => false),
      'all five places',
    )
    await until(async () => (await inUse()) === 0, 'a release')
    assert(performance.now() - began < 25_000, 'without waiting for the ttl')
    assert.equal(limiter.counters.failedOpen >= 5, true)
  })
})
