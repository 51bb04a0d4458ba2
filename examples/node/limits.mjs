// Limits, leases and budgets with the package redis-ratelimit, on node-redis or ioredis.
//
//     limits.mjs node-redis|ioredis [URL [PROTOCOL [SILENT_URL [cluster]]]]
//
// Nobody answers at SILENT_URL.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Cluster, Redis } from 'ioredis'
import { createClient, createCluster } from 'redis'
import { Calendar, Penalty, RateLimiter, Refused, SlidingWindow, TokenBucket } from 'redis-ratelimit'

const [library, url = 'redis://127.0.0.1:6379', protocol = '3', silent = 'redis://127.0.0.1:1', kind] = process.argv.slice(2)
const PLAN = [new SlidingWindow(2, '1m'), new SlidingWindow(100, '1d')]
const LOGIN = new Penalty(3, '10m', '10m', { grow: 2, max: '1d' })
const MONTH = new Calendar(1000, 'MONTH', { zone: 'Europe/Lisbon' })
const TOKENS = new TokenBucket(9000, 9000, '1m')

// The limiter takes the address and the credentials of the application's client, and connects by itself.
function client(url, isCluster) {
  const RESP = Number(protocol)
  if (library === 'node-redis') return isCluster ? createCluster({ rootNodes: [{ url }], RESP }) : createClient({ url, RESP })
  const options = { protocol: RESP, lazyConnect: true }
  return isCluster ? new Cluster([url], { redisOptions: options, lazyConnect: true }) : new Redis(url, options)
}

async function inTurn(values, work) {
  const results = []
  for (const value of values) results.push(await work(value))
  return results
}

async function steps(limiter, user) {
  const answers = await inTurn([1, 2, 3, 4], () => limiter.limit(`user:${user}`, '3/m'))
  assert.deepEqual(answers.map(({ allowed }) => allowed), [true, true, true, false])
  console.log('1 check:', answers[3].headers('user'))

  const lease = { capacity: 1, ttl: '30s' }
  let waited
  await limiter.lease(`db:${user}`, lease, async () => {
    await assert.rejects(limiter.lease(`db:${user}`, lease), Refused)
    waited = limiter.lease(`db:${user}`, { ...lease, wait: '2s' }, ({ held }) => held)
    await sleep(200)
  })
  assert(await waited)
  console.log('2 lease: taken, refused, released, waited for')

  const plans = await inTurn([1, 2, 3], () => limiter.limits([`plan:${user}`], PLAN))
  const [minute, day] = plans[2].each
  assert.deepEqual([plans[1].allowed, minute.allowed, day.allowed, day.remaining], [true, false, true, 98])
  console.log('3 plan: refused by the minute, 98 left of the day')

  const bans = await inTurn([1, 1, 0, 1], (cost) => limiter.limit(`ban:${user}:203.0.113.9`, LOGIN, { cost }))
  assert(bans[2].allowed && bans[3].retryAfter >= 590_000 && bans[3].retryAfter <= 600_000)
  console.log('4 login: the third failure bans for ten minutes')

  const months = await inTurn([999, 2, 1], (cost) => limiter.limit(`month:${user}`, MONTH, { cost }))
  assert.deepEqual(months.map(({ allowed }) => allowed), [true, false, true])
  console.log('5 month: 999 taken, 2 refused, 1 taken')

  await limiter.budget(`tokens:${user}`, TOKENS).hold(6000, (hold) => hold.settle(4500))
  const { remaining } = await limiter.peek(`tokens:${user}`, TOKENS)
  assert(remaining >= 4500 && remaining < 6000)
  console.log('6 tokens: 6000 held, 4500 taken')
}

const limiter = new RateLimiter(client(url, kind === 'cluster'), { prefix: 'example:' })
await steps(limiter, randomUUID())
await limiter.close()
for (const fail of ['open', 'closed']) {
  const down = new RateLimiter(client(silent, false), { fail, connectTimeoutMs: 100 })
  assert.equal((await down.limit('user:1', '3/m')).allowed, fail === 'open')
  assert.equal(down.counters.unavailable, 1)
  await down.close()
}
console.log('7 no answer: open lets pass, closed does not')
