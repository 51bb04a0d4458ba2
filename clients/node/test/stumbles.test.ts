/**
 * What went wrong when the first users tried this without a package.
 *
 * 1. One slow moment of the server, and leases stayed until their ttl. Below.
 * 2. A wrong limit turned all limits off, with a line in the log that did not say why. Below.
 * 3. ioredis sent two thirds of its calls to the wrong node of a cluster, failed with automatic pipelines, and ignored
 *    `keyPrefix`. In cluster.test.ts.
 */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Limit, RateLimiter, SlidingLog, type LimiterLike } from 'redis-ratelimit'
import { KINDS } from './kinds.js'
import { startServer, until, type Server } from './servers.js'

for (const kind of KINDS) {
  describe(`with ${kind.name} and the defaults`, () => {
    let server: Server
    before(async () => (server = await startServer()))
    after(() => server?.stop())

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

    test('a wrong limit is an error at the start that names it', async (t) => {
      const { redis, close } = await kind.client(server.port)
      const limiter = new RateLimiter(redis)
      t.after(async () => {
        await limiter.close()
        close()
      })
      const error = (message: RegExp) => ({ name: 'ConfigurationError', message })
      assert.throws(() => new SlidingLog(100, '1 minute'), error(/^window must be .* not '1 minute'$/))
      assert.throws(() => new Limit(['SLIDINGLOG', 100, '1m'] as unknown as LimiterLike), error(/^a limiter is needed/))
      await assert.rejects(limiter.ready({ limits: ['10/s', '100/fortnight'] }), error(/^'100\/fortnight' is no rate/))
      await assert.rejects(
        limiter.ready({ limits: [new SlidingLog(5_000_000, '1m')] }),
        error(/^the limit SLIDINGLOG 5000000 1m is wrong/),
      )
      await assert.rejects(
        limiter.ready({ policies: ['apii'] }),
        error(/^the policy 'apii' is wrong: ERR no such policy 'apii'$/),
      )
      await assert.rejects(
        limiter.limit('k', new SlidingLog(5_000_000, '1m')),
        { name: 'CallError' },
        'nor is it let through later',
      )
    })
  })
}
