import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { Cluster, Redis } from 'ioredis'
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { createClient, createCluster } from 'redis'
import { RateLimiterRatelimit } from 'redis-ratelimit/rate-limiter-flexible'
import { counted, quiet } from './rate-limiter-flexible.clients.js'
import { startCluster, startServer } from './servers.js'

const PREFIX = { keyPrefix: 'app:' }

describe('without a server that answers', () => {
  const insurance = () => new RateLimiterMemory({ points: 2, duration: 60 })

  async function dead(t: TestContext) {
    const redis = quiet(new Redis(1, { lazyConnect: true, enableOfflineQueue: false, retryStrategy: null }))
    const node = quiet(createClient({ url: 'redis://127.0.0.1:1', disableOfflineQueue: true, socket: { reconnectStrategy: false } }))
    await node.connect().catch(() => {})
    t.after(() => redis.disconnect())
    return { redis, node }
  }

  test('every call goes to the insuranceLimiter', async (t) => {
    for (const storeClient of Object.values(await dead(t))) {
      const ours = new RateLimiterRatelimit({ storeClient, points: 5, duration: 60, insuranceLimiter: insurance() })
      assert.equal((await ours.consume('k')).remainingPoints, 1)
      assert.equal((await ours.penalty('k')).remainingPoints, 0)
      await assert.rejects(ours.consume('k'), RateLimiterRes)
      assert.equal((await ours.reward('k', 3)).consumedPoints, 0)
      assert.equal((await ours.set('k', 1, 30)).consumedPoints, 1)
      assert.equal((await ours.get('k'))?.consumedPoints, 1)
      await ours.block('k', 30)
      await assert.rejects(ours.consume('k'), RateLimiterRes)
      assert.equal(await ours.delete('k'), true)
    }
  })

  test('without an insuranceLimiter every call is rejected with an error', async (t) => {
    for (const storeClient of Object.values(await dead(t))) {
      const ours = new RateLimiterRatelimit({ storeClient, points: 5, duration: 60 })
      for (const call of [ours.consume('k'), ours.penalty('k'), ours.reward('k'), ours.get('k'), ours.block('k', 1), ours.delete('k')]) {
        await assert.rejects(call, Error)
      }
    }
  })

  test('rejectIfRedisNotReady rejects without a call', async (t) => {
    const { redis, node } = await dead(t)
    const closed = createCluster({ rootNodes: [{ url: 'redis://127.0.0.1:1' }] })
    const cluster = quiet(new Cluster([{ port: 1 }], { lazyConnect: true }))
    const mocks = [{ status: 'closed' }, { isReady: false }, { isReady: () => false }]
    for (const storeClient of [redis, node, closed, cluster, ...mocks]) {
      const all = { storeClient, points: 5, duration: 60, rejectIfRedisNotReady: true }
      const ours = new RateLimiterRatelimit(all)
      for (const call of [ours.consume('k'), ours.reward('k'), ours.get('k'), ours.block('k', 1)]) {
        await assert.rejects(call, { message: 'Redis connection is not ready' })
      }
      const insured = new RateLimiterRatelimit({ ...all, insuranceLimiter: insurance() })
      assert.equal((await insured.consume('k')).remainingPoints, 1)
    }
  })

  test('a server without the module rejects, and names the command', async () => {
    const server = await startServer([], { module: false })
    const redis = quiet(new Redis(server.port))
    try {
      const ours = new RateLimiterRatelimit({ storeClient: redis, points: 5, duration: 60 })
      await assert.rejects(ours.consume('k'), /unknown command '?RL.FIXEDWINDOW/i)
    } finally {
      redis.disconnect()
      await server.stop()
    }
  })
})

describe('on a cluster', () => {
  test('no call is sent to a wrong node', async () => {
    const { nodes, port, stop } = await startCluster()
    const io = quiet(new Cluster([{ host: '127.0.0.1', port }], { ...PREFIX, enableAutoPipelining: true }))
    const node = quiet(createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${port}` }] }))
    const moved = async () => {
      const counts = await Promise.all(nodes.map((each) => counted(each, 'errorstats', 'MOVED')))
      return counts.reduce((sum, count) => sum + count, 0)
    }
    try {
      await node.connect()
      for (const storeClient of [io, node]) {
        const ours = new RateLimiterRatelimit({ storeClient, points: 1, duration: 60 })
        const keys = Array.from({ length: 100 }, (_, i) => `k${i}`)
        await Promise.all(keys.map((key) => ours.get(key)))
        const before = await moved()
        await Promise.all(keys.map((key) => ours.consume(key)))
        await Promise.all(keys.map((key) => ours.reward(key, 3)))
        await Promise.all(keys.map((key) => ours.get(key)))
        assert.equal(await moved(), before)
      }
    } finally {
      io.disconnect()
      node.destroy()
      await stop()
    }
  })
})
