/** Holds, requests behind a gate, and the end of their limiter. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { TokenBucket } from 'redis-ratelimit'
import { gateOn, user } from './gate-harness.js'
import { KINDS } from './kinds.js'
import { limiterOn } from './limiters.js'
import { startServer, type Server } from './servers.js'
import { AllTaken } from '../dist/taken/taken.js'

const BUCKET = ['TOKENBUCKET', '1000', '1', '1d']
const STREAMS = ['CONCURRENT', '2', '1m', 'nobody']
const bucket = new TokenBucket(1000, 1, '1d')
const CLOSED = { message: 'the limiter is closed' }

let server: Server
before(async () => (server = await startServer()))
after(() => server?.stop())

const left = async (key: string) => Number((await server.cli('RL.PEEK', key, ...BUCKET, 'COST', '0')).split('\n')[2])
const holds = async (key: string) => Number(/holds\n(\d+)/.exec(await server.cli('RL.INFO', key))?.[1] ?? 0)

for (const kind of KINDS) {
  describe(`holds, closed with ${kind.name}`, () => {
    test('are settled by close: at what was recorded, or else at the estimate', async (t) => {
      const { limiter, lines } = await limiterOn(t, kind, server.port)
      const [counted, estimated] = [`llm:${randomUUID()}`, `llm:${randomUUID()}`]
      const hold = await limiter.budget(counted, bucket).hold(800)
      await limiter.budget(estimated, bucket).hold(800)
      hold.settle(300)
      await limiter.close()
      await hold.cancel()
      assert.deepEqual([await left(counted), await holds(counted)], [700, 0])
      assert.deepEqual([await left(estimated), await holds(estimated), lines], [200, 0, []])
    })

    test('that are granted while close is under way are given back, and their work does not begin', async (t) => {
      const { limiter, lines } = await limiterOn(t, kind, server.port)
      const key = `llm:${randomUUID()}`
      await limiter.limit(`user:${key}`, '9/h')
      let hasBegun = false
      const granted = assert.rejects(limiter.budget(key, bucket).hold(800, () => void (hasBegun = true)), CLOSED)
      await limiter.close()
      await granted
      assert.deepEqual([await left(key), await holds(key), hasBegun, lines], [1000, 0, false, []])
    })
  })
}

describe('requests behind a gate, closed', () => {
  const streams = { name: 'streams', key: user, policy: 'streams' }
  const tokens = { name: 'tokens', key: user, limit: bucket, estimate: 800 }
  before(() => server.cli('RL.POLICY', 'SET', 'streams', 'LIMIT', 'CONCURRENT', '2', '1m'))

  test('release and settle what they took', async (t) => {
    const { gate, limiter, lines, left } = gateOn(t, server.port, [streams, tokens])
    const rest = async () => [await left('streams:ann', ...STREAMS), await left('tokens:ann', ...BUCKET)]
    const pass = await gate.enter({ user: 'ann' })
    pass.spent['tokens'] = 300
    const before = await rest()
    await limiter.close()
    await pass.end()
    assert.deepEqual([before, await rest(), lines], [[1, 200], [2, 700], []])
  })

  for (const rules of [[streams], [tokens], [streams, tokens]]) {
    const names = rules.map(({ name }) => name).join(' and ')
    test(`give back what they are granted meanwhile: ${names}`, async (t) => {
      const { gate, limiter, lines, left } = gateOn(t, server.port, rules)
      await limiter.ready()
      await (await gate.enter({ user: 'eve' })).end()
      server.process.kill('SIGSTOP')
      const passing = assert.rejects(gate.enter({ user: 'ann' }), CLOSED)
      // One turn later the first question is under way.
      await new Promise(setImmediate)
      const closed = limiter.close()
      server.process.kill('SIGCONT')
      await Promise.all([passing, closed])
      assert.deepEqual([await left('streams:ann', ...STREAMS), await left('tokens:ann', ...BUCKET), lines], [2, 1000, []])
      assert.equal((await gate.enter({})).refusal, undefined, 'no rule is for it')
    })
  }
})

test('what nobody gives back is forgotten some time after its end', async () => {
  const [all, lasting] = [new AllTaken(() => performance.now()), { until: Infinity, end: async () => undefined }]
  all.add(lasting)
  for (let i = 0; i < 10_000; i++) all.add({ until: performance.now() - 1, end: () => Promise.reject(new Error('ended')) })
  assert.ok(all.size <= 1000)
  for (let i = 0; i < 3000; i++) all.add({ until: Infinity, end: async () => undefined })
  assert.ok(all.size > 3000)
})
