import assert from 'node:assert/strict'
import { after, before, describe, test, type TestContext } from 'node:test'
import { RateLimiterRedis, type RateLimiterRes } from 'rate-limiter-flexible'
import { RateLimiterRatelimit } from 'redis-ratelimit/rate-limiter-flexible'
import { CLUSTER, SINGLE, type Opened } from './rate-limiter-flexible.clients.js'
import { SCENARIOS, type Step } from './rate-limiter-flexible.scenarios.js'
import { startCluster, startServer } from './servers.js'

// Two limiters are asked at the same time. They may differ by this, and by all the time that a busy machine took so far.
const SLACK = 1500

/** What a step replied, in words that can be compared. */
async function outcome(step: Step, limiter: RateLimiterRedis, key: string): Promise<{ told: object; ms: number }> {
  const [how, reply] = await step(limiter, key).then(
    (reply) => ['resolved', reply] as const,
    (error: unknown) => ['rejected', error] as const,
  )
  // The server's error of a script ends with the script's name and line.
  if (reply instanceof Error) return { told: { how, error: reply.message.replace(/,? script: .*/, '') }, ms: 0 }
  if (reply === null || typeof reply !== 'object') return { told: { how, reply }, ms: 0 }
  const { msBeforeNext, ...told } = (reply as RateLimiterRes).toJSON()
  return { told: { how, ...told, forever: msBeforeNext === -1 }, ms: Number(msBeforeNext) }
}

type Open = (port: number) => Promise<Opened>

async function openedFor(t: TestContext, open: Open, port: number): Promise<Opened> {
  const opened = await open(port)
  t.after(() => opened.close())
  return opened
}

function compared(name: string, clients: Record<string, Open>, start: () => Promise<{ port: number; stop(): Promise<void> }>) {
  describe(name, () => {
    let server: { port: number; stop(): Promise<void> }
    before(async () => void (server = await start()))
    after(() => server?.stop())
    for (const [kind, open] of Object.entries(clients)) {
      describe(kind, { concurrency: true }, () => {
        let opened: Opened
        before(async () => void (opened = await open(server.port)))
        after(() => opened?.close())
        for (const [title, { options, steps }] of Object.entries(SCENARIOS)) {
          test(title, async (t) => {
            // With ioredis a client has one script for all limiters of the original: that of the last one.
            const { client } = options?.customIncrTtlLuaScript ? await openedFor(t, open, server.port) : opened
            const all = { storeClient: client, keyPrefix: `p:${title}`, points: 5, duration: 60, ...options }
            const theirs = new RateLimiterRedis({ ...all, useRedisPackage: !('defineCommand' in client) })
            const ours = new RateLimiterRatelimit(all)
            const begun = performance.now()
            for (const [i, step] of steps.entries()) {
              const name = `${kind}:${title}`
              const [own, our] = await Promise.all([outcome(step, theirs, `${name}:own`), outcome(step, ours, `${name}:our`)])
              assert.deepEqual(our.told, own.told, `step ${i + 1}`)
              const slack = SLACK + performance.now() - begun
              assert.ok(Math.abs(our.ms - own.ms) < slack, `step ${i + 1}: ${our.ms} ms, and not ${own.ms}`)
            }
          })
        }
      })
    }
  })
}

compared('the backend replies what RateLimiterRedis does', SINGLE, startServer)
compared('on a cluster it does, too', CLUSTER, startCluster)
