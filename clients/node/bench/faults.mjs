// What a bad day of the server costs, by client: one table. The servers are those of the tests.
//
//   RATELIMIT_MODULE=... npm run faults [-- part of a fault's name]

import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { RateLimiter } from 'redis-ratelimit'
import { KINDS } from '../.test/kinds.js'
import { startServer } from '../.test/servers.js'

const SECOND = 1000
const TTL = '20s'

/** Calls of so many callers for a second, after `begin`. Each sends its next one at once. */
async function traffic(limiter, callers, begin) {
  const counts = { calls: 0, unanswered: 0 }
  const until = performance.now() + SECOND
  const caller = async (number) => {
    while (performance.now() < until) {
      const { answered } = await limiter.limit(`user:${number}`, '1000000/s')
      counts.calls += 1
      if (!answered) counts.unanswered += 1
    }
  }
  await begin()
  await Promise.all(Array.from({ length: callers }, (_, number) => caller(number)))
  return counts
}

const unanswered = ({ calls, unanswered }) => `${unanswered} of ${calls}`

const FAULTS = {
  'unanswered in the second of a CLIENT KILL, 8 callers': async ({ server, limiter }) => {
    const counts = await traffic(limiter, 8, () => void pause(100).then(() => server.cli('CLIENT', 'KILL', 'TYPE', 'normal')))
    return unanswered(counts)
  },
  'the same, 50 callers': async ({ server, limiter }) => {
    const counts = await traffic(limiter, 50, () => void pause(100).then(() => server.cli('CLIENT', 'KILL', 'TYPE', 'normal')))
    return unanswered(counts)
  },
  'RL.RELEASE sent for 200 cancelled waits': async ({ server, limiter }) => {
    const key = `pool:${randomUUID()}`
    const held = await limiter.lease(key, { capacity: 1, ttl: TTL })
    const control = new AbortController()
    const waits = Array.from({ length: 200 }, () =>
      limiter.lease(key, { capacity: 1, ttl: TTL, wait: '15s', signal: control.signal }).catch(() => undefined),
    )
    await pause(1500)
    control.abort()
    await Promise.all(waits)
    await pause(10_000)
    await held.release()
    const [, calls = 0] = /cmdstat_rl\.release:calls=(\d+)/i.exec(await server.cli('INFO', 'commandstats')) ?? []
    return String(calls - 1)
  },
  'ms until no lease is left after the server was stopped for 4 s': async ({ server, limiter }) => {
    const key = `pool:${randomUUID()}`
    server.process.kill('SIGSTOP')
    for (let i = 0; i < 40; i += 1) void limiter.lease(key, { capacity: 100, ttl: TTL }, () => pause(100)).catch(() => undefined)
    await pause(4000)
    server.process.kill('SIGCONT')
    const began = performance.now()
    const used = async () => 100 - Number((await server.cli('RL.PEEK', key, 'CONCURRENT', '100', TTL, 'x', 'COST', '0')).split('\n')[2])
    while ((await used()) > 0) await pause(20)
    return String(Math.round(performance.now() - began))
  },
}

async function run(kind, fault) {
  const server = await startServer()
  const made = await kind.client(server.port)
  const limiter = new RateLimiter(made.redis, { logger: () => undefined, timeoutMs: 100 })
  try {
    await limiter.ready({ required: true })
    return await fault({ server, limiter, made, kind })
  } finally {
    await limiter.close()
    made.close()
    await server.stop()
  }
}

const kinds = KINDS.filter(({ name }) => name.endsWith('6'))
console.log(`| fault | ${kinds.map(({ name }) => name).join(' | ')} |`)
console.log(`|---|${kinds.map(() => '---').join('|')}|`)
const [only = ''] = process.argv.slice(2)
for (const [name, fault] of Object.entries(FAULTS)) {
  if (!name.includes(only)) continue
  const cells = []
  for (const kind of kinds) cells.push(await run(kind, fault))
  console.log(`| ${name} | ${cells.join(' | ')} |`)
}
