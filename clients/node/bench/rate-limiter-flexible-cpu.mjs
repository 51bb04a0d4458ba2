// Server CPU of rate-limiter-flexible's consume, with its own Lua and with the module, in µs per call:
//
//     RATELIMIT_MODULE=... node bench/rate-limiter-flexible-cpu.mjs [calls [rounds]]
//
// Its server is one of the tests, which must be compiled. Both backends take turns in slices, so that a busy machine slows both.
// "All" is the main thread's time, most of which goes into sockets. "Inside" is the time of that inside scripts and RL commands.
// Each figure is the median of the rounds.

import { Redis } from 'ioredis'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import { RateLimiterRatelimit } from 'redis-ratelimit/rate-limiter-flexible'
import { startServer } from '../.test/servers.js'

const [calls = 20_000, rounds = 3] = process.argv.slice(2).map(Number)
const [CALLERS, KEYS, SLICES, POINTS] = [50, 1000, 10, 10]
const LOADS = {
  // The points of a load, its blockDuration, and whether its calls are refused.
  'consume, admitted': { points: 1e6, blockDuration: 0, refused: false },
  'consume, refused': { points: POINTS, blockDuration: 0, refused: true },
  'consume, blocked by blockDuration': { points: POINTS, blockDuration: 7200, refused: true },
}

// Seconds so far: of CPU, and inside scripts and RL commands.
async function used(redis) {
  const cpu = await redis.info('cpu')
  const inside = await redis.info('commandstats')
  const seconds = ['user', 'sys'].map((kind) => Number(cpu.match(`used_cpu_${kind}_main_thread:([0-9.]+)`)[1]))
  const micros = [...inside.matchAll(/cmdstat_(?:eval|evalsha|rl\.\w+):calls=\d+,usec=(\d+)/g)].map((found) => Number(found[1]))
  return [sum(seconds), sum(micros) / 1e6]
}

async function consume(limiter, { refused }, many) {
  const caller = async () => {
    while (many-- > 0) {
      const key = refused ? 'one' : String(many % KEYS)
      const told = await limiter.consume(key).then(() => false, isRefusal)
      if (told !== refused) throw new Error(`refused: ${told}`)
    }
  }
  await Promise.all(Array.from({ length: CALLERS }, caller))
}

function isRefusal(refusal) {
  if (refusal instanceof Error) throw refusal
  return true
}

// µs per call, all and inside, of each backend.
async function round(redis, load) {
  await redis.flushall()
  const backends = [RateLimiterRedis, RateLimiterRatelimit].map((Backend) => {
    const { points, blockDuration } = load
    const limiter = new Backend({ storeClient: redis, keyPrefix: Backend.name, points, duration: 3600, blockDuration })
    return { limiter, totals: [0, 0] }
  })
  for (const { limiter } of backends) {
    for (let i = 0; load.refused && i < POINTS; i++) await limiter.consume('one')
    await consume(limiter, load, 1000)
  }
  for (let slice = 0; slice < SLICES; slice++) {
    for (const backend of backends) {
      const before = await used(redis)
      await consume(backend.limiter, load, calls / SLICES)
      const after = await used(redis)
      backend.totals = backend.totals.map((total, i) => total + after[i] - before[i])
    }
  }
  return backends.flatMap(({ totals }) => totals.map((seconds) => (seconds * 1e6) / calls))
}

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0)
const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]

const server = await startServer()
const redis = new Redis(server.port)
try {
  console.log('load                                 all: own  ours  inside: own  ours')
  for (const [name, load] of Object.entries(LOADS)) {
    const found = []
    for (let i = 0; i < rounds; i++) found.push(await round(redis, load))
    const [own, ownInside, ours, oursInside] = [0, 1, 2, 3].map((i) => median(found.map((figures) => figures[i])).toFixed(1))
    const faster = (ownInside / oursInside).toFixed(1)
    console.log(`${name.padEnd(36)} ${own.padStart(8)} ${ours.padStart(5)} ${ownInside.padStart(12)} ${oursInside.padStart(5)}  ${faster} x`)
  }
} finally {
  redis.disconnect()
  await server.stop()
}
