/** The time in `RateLimit`, against a server. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import {
  Calendar,
  Commands,
  Decision,
  FixedWindow,
  Gcra,
  LeakyBucket,
  SlidingLog,
  SlidingWindow,
  TokenBucket,
  Uniform,
  type Limiter,
} from 'redis-ratelimit'
import { KINDS, type Made } from './kinds.js'
import { startServer, type Server } from './servers.js'

/** The start of an hour, in microseconds. */
const NOW = 1700002800000000
const field = (decision: Decision) => decision.headers()['RateLimit']

describe('t is when the next request fits if nothing remains', () => {
  let server: Server
  let made: Made
  before(async () => {
    server = await startServer()
    made = await KINDS[0]!.client(server.port)
  })
  after(async () => {
    made?.close()
    await server?.stop()
  })

  const cases: readonly (readonly [limiter: Limiter, seconds: number])[] = [
    [new Gcra(2, 3, '1m'), 20],
    [new Gcra(0, 3, '1m'), 20],
    // 60 s / 7 is 8.57 s. What is rounded is rounded up.
    [new Gcra(6, 7, '1m'), 9],
    [new TokenBucket(10, 4, '1m'), 15],
    // 180 s until it is full: two after 60 s, two after 120 s, and the fifth.
    [new TokenBucket(5, 2, '1m', { batch: true }), 60],
    [new TokenBucket(5, 5, '1m', { batch: true }), 60],
    [new LeakyBucket(5, 2, '1m'), 30],
    [new FixedWindow(3, '1m'), 60],
    [new Calendar(3, 'HOUR'), 3600],
    [new Uniform('1m'), 60],
  ]
  for (const [limiter, seconds] of cases) {
    test(`of ${limiter.words.join(' ')}: ${seconds}`, async () => {
      const key = `k:${randomUUID()}`
      const commands = new Commands(made.redis)
      const ask = async (after: number, cost = 1) => {
        const { each } = await commands.multi([key], [limiter], { cost, at: NOW + after * 1e6 })
        return each[0]!
      }
      const last = await ask(0, (await ask(0, 0)).limit)
      const refused = await ask(0)
      assert.deepEqual([last.allowed, refused.allowed], [true, false])
      assert.deepEqual([field(last), field(refused)], Array(2).fill(`"default";r=0;t=${seconds}`))
      assert.equal((await ask(seconds - 1)).allowed, false)
      assert.equal((await ask(seconds)).allowed, true)
    })
  }
})

test('t is the reset if the reply does not tell when the next request fits', () => {
  assert.equal(field(new Decision([0, 3, 0, 0, 120000], new SlidingWindow(3, '1m'))), '"default";r=0;t=120')
  assert.equal(field(new Decision([0, 3, 0, 0, 60000], new SlidingLog(3, '1m'))), '"default";r=0;t=60')
  assert.equal(field(new Decision([0, 3, 0, 0, 60000])), '"default";r=0;t=60')
})

test('t is exact for the largest numbers', () => {
  // The whole limit is available after 100 years, and one of it after a century / 2^53, which is 0.35 ms.
  const century = 3153600000000
  const limiter = new Gcra(Number.MAX_SAFE_INTEGER - 1, Number.MAX_SAFE_INTEGER, `${century}ms`)
  assert.equal(field(new Decision([0, Number.MAX_SAFE_INTEGER, 0, 0, century], limiter)), '"default";r=0;t=1')
  // The same with a reset of 1.001 s more: FORCE charged that much beyond the limit.
  assert.equal(field(new Decision([0, Number.MAX_SAFE_INTEGER, 0, 0, century + 1001], limiter)), '"default";r=0;t=2')
})
