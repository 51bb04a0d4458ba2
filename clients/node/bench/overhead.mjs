// Microseconds per call, one after another: the raw client's own call, the same by commands.gcra, and limiter.limit.
//
//     RATELIMIT_MODULE=... npm run bench [-- PORT [CALLS [ROUNDS]]]
//
// Without a port it starts a server of the tests. Each figure is the median of many short rounds, in which the ways take turns. The
// CPU time is that of this process, which other programs on the machine hardly change.

import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { Commands, RateLimiter } from 'redis-ratelimit'
import { startServer } from '../.test/servers.js'

const [given, calls = 2000, rounds = 25] = process.argv.slice(2).map(Number)
const MANY = 10 ** 15
const WORDS = ['RL.GCRA', 'bench', MANY, MANY, '1s'].map(String)

const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]

// The time of each way on the clock and of the CPU, in µs per call.
async function measured(ways) {
  const figures = Object.fromEntries(Object.keys(ways).map((name) => [name, { clock: [], cpu: [] }]))
  for (let round = -2; round < rounds; round += 1) {
    for (const [name, way] of Object.entries(ways)) {
      const [cpu, clock] = [process.cpuUsage(), performance.now()]
      for (let call = 0; call < calls; call += 1) await way()
      const { user, system } = process.cpuUsage(cpu)
      if (round < 0) continue // the first rounds warm up
      figures[name].clock.push(((performance.now() - clock) * 1000) / calls)
      figures[name].cpu.push((user + system) / calls)
    }
  }
  return Object.entries(figures).map(([name, { clock, cpu }]) => ({ name, clock: median(clock), cpu: median(cpu) }))
}

function show(title, rows) {
  const [{ cpu: raw }] = rows
  console.log(`${title.padEnd(36)}   clock     CPU   beside the raw client`)
  for (const { name, clock, cpu } of rows) {
    const more = cpu === raw ? '' : `${cpu < raw ? '' : '+'}${(cpu - raw).toFixed(1)}`
    console.log(`  ${name.padEnd(34)}${clock.toFixed(1).padStart(8)}${cpu.toFixed(1).padStart(8)}${more.padStart(8)}`.trimEnd())
  }
}

async function compare(title, client, raw) {
  const commands = new Commands(client)
  const limiter = new RateLimiter(client, { timeout: '5s' })
  const cached = new RateLimiter(client, { timeout: '5s', cache: {} })
  await limiter.limit('refused', '1/h')
  const ways = {
    'the raw client': raw,
    'commands.gcra': () => commands.gcra('bench', MANY, MANY, '1s'),
    'limiter.limit': () => limiter.limit('rate', '1000000000/s'),
    'limiter.limit, refused from memory': () => cached.limit('refused', '1/h'),
  }
  show(title, await measured(ways))
  await Promise.all([limiter.close(), cached.close()])
}

const { port, stop } = given ? { port: given, stop: () => {} } : await startServer()
const redis = createClient({ url: `redis://127.0.0.1:${port}` })
const ioredis = new Redis({ host: '127.0.0.1', port })
try {
  await redis.connect()
  await compare('node-redis', redis, () => redis.sendCommand(WORDS))
  await compare('ioredis', ioredis, () => ioredis.call(...WORDS))
} finally {
  redis.destroy()
  ioredis.disconnect()
  await stop()
}
