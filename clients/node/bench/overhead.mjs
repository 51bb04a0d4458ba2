// Microseconds per call, one after another: the raw client's own call, the same by commands.gcra and by limiter.limit.
//
//     overhead.mjs [PORT [CALLS [ROUNDS]]]
//
// Without a port it starts a server with the module of RATELIMIT_MODULE. Build the package before. Each figure is the median
// of many short rounds, in which the ways take turns. The CPU time is that of this process, which other programs on the
// machine hardly change.

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { once } from 'node:events'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { Commands, RateLimiter } from 'redis-ratelimit'

const [given, calls = 2000, rounds = 25] = process.argv.slice(2).map(Number)
const MODULE = resolve(process.env.RATELIMIT_MODULE ?? '../../target/release/libredis_ratelimit.so')
const MANY = 10 ** 15
const RATE = '1000000000/s'

async function freePort() {
  const listener = createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address()
  listener.close()
  await once(listener, 'close')
  return port
}

async function serve() {
  if (given) return { port: given, stop: () => {} }
  const [port, folder] = [await freePort(), mkdtempSync(join(tmpdir(), 'overhead-'))]
  const words = ['--bind', '127.0.0.1', '--port', String(port), '--save', '', '--dir', folder, '--loadmodule', MODULE]
  const server = spawn('redis-server', words, { stdio: 'ignore' })
  return { port, stop: () => (server.kill('SIGKILL'), rmSync(folder, { recursive: true, force: true })) }
}

const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]

/** Measures ways of calling, in turns. Returns the time of each on the clock and of the CPU, in µs per call. */
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
  console.log(`${title.padEnd(34)}   clock     CPU   beside the raw client`)
  const raw = rows[0].cpu
  for (const { name, clock, cpu } of rows) {
    const more = cpu - raw
    console.log(`  ${name.padEnd(32)}${clock.toFixed(1).padStart(8)}${cpu.toFixed(1).padStart(8)}${(more < 0 ? '' : '+') + more.toFixed(1)}`.replace(/([+-][\d.]+)$/, (text) => text.padStart(8)))
  }
}

const words = ['RL.GCRA', 'bench', MANY, MANY, '1s'].map(String)
const { port, stop } = await serve()
const redis = createClient({ url: `redis://127.0.0.1:${port}` })
redis.on('error', () => {})
await redis.connect()
const ioredis = new Redis({ host: '127.0.0.1', port })
try {
  const clients = [
    ['node-redis', redis, () => redis.sendCommand(words)],
    ['ioredis', ioredis, () => ioredis.call(...words)],
  ]
  for (const [title, client, raw] of clients) {
    const commands = new Commands(client)
    const limiter = new RateLimiter(client, { timeout: '5s' })
    const cached = new RateLimiter(client, { timeout: '5s', cache: {} })
    await commands.gcra('refused', 0, 1, '1h')
    const rows = await measured({
      'the raw client': raw,
      'commands.gcra': () => commands.gcra('bench', MANY, MANY, '1s'),
      'limiter.limit': () => limiter.limit('rate', RATE),
      'limiter.limit, refused from memory': () => cached.limit('refused', '1/h'),
    })
    show(title, rows)
    await Promise.all([limiter.close(), cached.close()])
  }
} finally {
  redis.destroy()
  ioredis.disconnect()
  stop()
}
