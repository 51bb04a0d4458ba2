/** Replies are the same values, whatever types the client makes of them. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { createClient, RESP_TYPES } from 'redis'
import { Commands, Rate, RateLimiter, TokenBucket, type RedisClient } from 'redis-ratelimit'
import { KINDS } from './kinds.js'
import { limiterOn, onServer } from './limiters.js'

onServer('large counts', (server) => {
  for (const kind of KINDS) {
    test(`with ${kind.name} are those of the server`, async (t) => {
      const { limiter } = await limiterOn(t, kind, server.port)
      const decision = await limiter.limit(randomUUID(), new Rate('9007199254740991/d'))
      assert.deepEqual([decision.limit, decision.remaining], [9007199254740991, 9007199254740990])
    })
  }
})

onServer('types of replies that an application has chosen', (server) => {
  const clients = {
    async 'node-redis'(port: number) {
      const typeMapping = {
        [RESP_TYPES.NUMBER]: String,
        [RESP_TYPES.BLOB_STRING]: Buffer,
        [RESP_TYPES.MAP]: Map,
        [RESP_TYPES.DOUBLE]: String,
      }
      const redis = createClient({ url: `redis://127.0.0.1:${port}`, commandOptions: { typeMapping } })
      await redis.connect()
      return { redis, close: () => redis.destroy() }
    },
    async ioredis(port: number) {
      const redis = new Redis({ port, stringNumbers: true, protocol: 2 })
      return { redis, close: () => redis.disconnect() }
    },
  }
  for (const [name, client] of Object.entries(clients)) {
    test(`do not matter with ${name}`, async (t) => {
      const { redis, close } = await client(server.port)
      const limiter = new RateLimiter(redis, { timeoutMs: 5000 })
      t.after(async () => {
        await limiter.close()
        close()
      })
      for (const commands of [new Commands(redis), limiter.commands]) {
        const key = randomUUID()
        const { each } = await commands.multi([key], ['10/h', new TokenBucket(5, 1, '1h')], { hold: { id: 'h', ttl: '1h' } })
        assert.deepEqual(each.map(({ remaining }) => remaining), [9, 4])
        const info = await commands.info(key)
        assert.deepEqual([info?.['limiter'], info?.['holds']], ['MULTI', 1])
        const limits = info?.['limits'] as { limiter: string; length_ms: number }[]
        assert.deepEqual(
          limits.map(({ limiter, length_ms }) => [limiter, length_ms]),
          [['TOKENBUCKET', 3600000], ['GCRA', 3600000]],
        )
        assert.equal((await commands.shed(key + 'shed', 0.5)).chance, 0)
        assert.equal(await commands.xadd(key + 'x', 5, '1-1', { a: 1 }), '1-1')
        assert.equal(await commands.release(key + 'l', 'a'), false)
        assert.equal((await commands.help())[0]?.startsWith('RL.'), true)
        assert.equal(typeof (await commands.policySet('p', ['10/s'])), 'number')
        assert.equal(typeof (await commands.policyList())['p'], 'number')
      }
    })
  }
})

test('commands need a client', () => {
  assert.throws(() => new Commands({} as RedisClient), { name: 'ConfigurationError', message: /a client is needed/ })
  assert.throws(() => new Commands(null as unknown as RedisClient), { name: 'ConfigurationError' })
})
