/** Leases whose limit finds itself, from how their work ends. */

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Redis } from 'ioredis'
import { RateLimiter, type LeaseOptions } from 'redis-ratelimit'
import { startServer, type Server } from './servers.js'

class TooSlow extends Error {}

describe('a limit that finds itself', () => {
  let server: Server
  let redis: Redis
  let limiter: RateLimiter
  before(async () => {
    server = await startServer()
    redis = new Redis(server.port)
    limiter = new RateLimiter(redis, { timeoutMs: 3000 })
  })
  after(async () => {
    await limiter?.close()
    redis?.disconnect()
    await server?.stop()
  })

  const limitOf = async (key: string) => Number((await limiter.commands.info(key))?.['limit'])
  const options: LeaseOptions = { capacity: 100, ttl: '30s', adapt: { start: 50 }, drops: [TooSlow] }
  const fails = (error: unknown) => async () => {
    throw error
  }

  test('takes a class of each kind for a class, and no function', async () => {
    // As older compilers write a class.
    function Compiled(this: Error) {}
    Compiled.prototype = Object.create(Error.prototype)
    const fresh = () => ({ ...options, adapt: { start: 50 } })
    for (const [number, drops] of [TooSlow, TypeError, DOMException, Compiled].entries()) {
      const key = `class${number}`
      await assert.rejects(limiter.lease(key, { ...fresh(), drops: drops as never }, fails(new RangeError('another'))), RangeError)
      assert.equal(await limitOf(key), 50)
      const own = Reflect.construct(drops, []) as Error
      await assert.rejects(limiter.lease(key, { ...fresh(), drops: drops as never }, fails(own)), (error) => error === own)
      assert.equal(await limitOf(key), 45)
    }
    const plain = function (error: unknown) {
      return error instanceof TypeError
    }
    await assert.rejects(limiter.lease('plain', { ...fresh(), drops: plain }, fails(new TypeError('wrong'))), TypeError)
    assert.equal(await limitOf('plain'), 45)
  })

  test('wrong options are errors', async () => {
    await assert.rejects(limiter.lease('wrong', { ...options, adapt: false }), /drops needs adapt/)
    await assert.rejects(limiter.lease('wrong', { ...options, adapt: { speed: 1 } as never }), /there is no option 'adapt.speed'/)
    await assert.rejects(limiter.lease('wrong', { ...options, adapt: 5 as never }), /adapt must be true or false, not 5/)
    await assert.rejects(limiter.lease('wrong', { ...options, drops: TooSlow.name as never }), /drops must be a class of errors, a list of them/)
  })
})
