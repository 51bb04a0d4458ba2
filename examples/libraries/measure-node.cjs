// Server CPU of rate-limiter-flexible's consume, with its own storage and with the module's, as JSON: µs per call in
// all, and of these inside the command or script, of each:
//   node measure-node.cjs port admitted|refused|blocked calls slices

const { Redis } = require('ioredis')
const { RateLimiterRedis } = require('rate-limiter-flexible')
const { RateLimiterRatelimit } = require('./rate-limiter-flexible-ratelimit.cjs')

const load = process.argv[3]
const [port, , calls, slices] = process.argv.slice(2).map(Number)
const [CALLERS, KEYS] = [50, 1000]
const redis = new Redis(port)

// Seconds so far: of CPU, and inside scripts and RL commands.
async function used() {
  const cpu = await redis.info('cpu')
  const inside = await redis.info('commandstats')
  const figures = ['used_cpu_user_main_thread', 'used_cpu_sys_main_thread']
  const seconds = figures.map((name) => Number(cpu.match(`${name}:([0-9.]+)`)[1]))
  const micros = [...inside.matchAll(/cmdstat_(?:eval|evalsha|rl\.\w+):calls=\d+,usec=(\d+)/g)].map((found) => Number(found[1]))
  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0)
  return [sum(seconds), sum(micros) / 1e6]
}

async function consume(limiter, many, right) {
  const caller = async () => {
    while (many-- > 0) {
      const key = load === 'admitted' ? String(many % KEYS) : 'one'
      const refused = await limiter.consume(key).then(() => false, (refusal) => {
        if (refusal instanceof Error) throw refusal
        return true
      })
      if (right !== undefined && refused !== right) throw new Error(`${load}, but refused: ${refused}`)
    }
  }
  await Promise.all(Array.from({ length: CALLERS }, caller))
}

async function main() {
  const limiters = [RateLimiterRedis, RateLimiterRatelimit].map((Backend) => {
    const points = load === 'admitted' ? 1000 : 10
    const blockDuration = load === 'blocked' ? 7200 : 0
    return new Backend({ storeClient: redis, keyPrefix: Backend.name, points, duration: 3600, blockDuration })
  })
  const totals = [[0, 0], [0, 0]]
  for (const limiter of limiters) await consume(limiter, 1000)
  for (let slice = 0; slice < slices; slice++) {
    for (const [i, limiter] of limiters.entries()) {
      const before = await used()
      await consume(limiter, calls / slices, load !== 'admitted')
      const after = await used()
      totals[i] = totals[i].map((total, figure) => total + after[figure] - before[figure])
    }
  }
  console.log(JSON.stringify(totals.map((figures) => figures.map((seconds) => (seconds * 1e6) / calls))))
  redis.disconnect()
}

main()
