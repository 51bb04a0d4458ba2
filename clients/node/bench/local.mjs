// What a local limit costs and saves: the time of `tryTake`, a fleet of processes against one limit, and what a fleet admits while
// its server is stopped.
//
//     RATELIMIT_MODULE=... npm run bench:local [-- tryTake | fleet | away]...
//
// The servers are those of the tests. `fleet` has PROCESSES (20) processes of 600 calls
// a second each, against 10000/s: first by `take()`, then by `limit()` for each request. `away` has 4 processes with a share, whose
// server is stopped for 30 s (SIGSTOP) and goes on after it. CLIENT is `redis` or `ioredis`, and
// WAYS is `take limit` or one of them.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { RateLimiter, Share } from 'redis-ratelimit'
import { startServer } from '../.test/servers.js'

const CLIENT = process.env.CLIENT ?? 'redis'
const WAYS = (process.env.WAYS ?? 'take limit').split(' ')
const PROCESSES = Number(process.env.PROCESSES ?? 20)
const FLEET = { processes: PROCESSES, rate: 500 * PROCESSES, demand: 600 * PROCESSES, seconds: 16, warm: 8 }
const AWAY = { processes: 4, rate: 200, demand: 400, before: 5, away: 30, after: 10 }
// What was admitted is counted in slots, in ms.
const SLOT = 10

async function connect(port) {
  if (CLIENT === 'ioredis') return new Redis({ host: '127.0.0.1', port })
  const redis = createClient({ url: `redis://127.0.0.1:${port}` })
  redis.on('error', () => {})
  await redis.connect()
  return redis
}

const disconnect = (redis) => (CLIENT === 'ioredis' ? redis.disconnect() : redis.destroy())

// The median of many rounds, with the time of the loop itself.
async function tryTake() {
  const server = await startServer()
  const redis = await connect(server.port)
  const limiter = new RateLimiter(redis, { timeoutMs: 5000 })
  const [rounds, calls] = [[], 2000]
  try {
    const limit = limiter.local('bench', '10000000/s', { hold: '500ms', processes: 1 })
    await limit.take(100_000)
    for (let trial = 0; trial < 20_000 && rounds.length < 300; trial += 1) {
      await limit.take(calls)
      // The batch arrives.
      if (trial % 10 === 0) await sleep(1)
      const begun = performance.now()
      let found = 0
      for (let call = 0; call < calls; call += 1) if (limit.tryTake()?.allowed) found += 1
      const took = performance.now() - begun
      if (found === calls) rounds.push((took * 1e6) / calls)
    }
  } finally {
    await limiter.close()
    disconnect(redis)
    await server.stop()
  }
  rounds.sort((a, b) => a - b)
  console.log(`tryTake: ${rounds[rounds.length >> 1].toFixed(0)} ns, the median of ${rounds.length} rounds of ${calls}; the fastest ${rounds[0].toFixed(0)} ns`)
}

// One process: calls at equal distances. Its answer is how much was admitted in each slot, and how long calls took.
async function worker({ port, seconds, gap, way, limit: rate, processes, share, offset }) {
  const redis = await connect(port)
  const limiter = new RateLimiter(redis, { timeoutMs: share ? 100 : 2000, fail: share ? new Share({ processes }) : 'open', logger: () => {} })
  const limit = limiter.local('fleet', rate, { processes })
  const ask = way === 'take' ? () => limit.take() : () => limiter.limit('fleet', rate)
  const [slots, times, underWay] = [{}, [], new Set()]
  const one = async (begin) => {
    const start = performance.now()
    const { allowed } = await ask()
    times.push(performance.now() - start)
    if (!allowed) return
    const slot = Math.floor((Date.now() - begin) / SLOT)
    slots[slot] = (slots[slot] ?? 0) + 1
  }
  const begun = once(process, 'message')
  process.send('ready')
  const [begin] = await begun
  await sleep(Math.max(0, begin - Date.now()))
  for (let due = begin + offset; due < begin + seconds * 1000; ) {
    await sleep(Math.max(1, due - Date.now()))
    for (; due <= Date.now(); due += gap) {
      const call = one(begin)
      underWay.add(call)
      void call.finally(() => underWay.delete(call))
    }
  }
  await Promise.all(underWay)
  await new Promise((resolve) => process.send({ slots, times, counters: limiter.counters }, resolve))
  await limiter.close()
  disconnect(redis)
  process.disconnect()
}

// Starts processes, and returns what all of them have counted. They begin together, when all of them are there. `meanwhile` runs
// beside them, and is told when they begin.
async function run(job, processes, meanwhile) {
  const children = Array.from({ length: processes }, (_, i) => {
    const child = fork(fileURLToPath(import.meta.url), { env: { ...process.env, WORKER: '1' }, serialization: 'advanced' })
    child.send({ ...job, processes, offset: (i * job.gap) / processes })
    return child
  })
  await Promise.all(children.map((child) => once(child, 'message')))
  const heard = children.map((child) => new Promise((resolve, reject) => {
    child.on('message', resolve)
    child.on('exit', (code) => code === 0 || reject(new Error(`a process ended with ${code}`)))
  }))
  const begin = Date.now() + 1000
  for (const child of children) child.send(begin)
  await meanwhile(begin)
  const slots = []
  const times = []
  const counters = {}
  for (const one of await Promise.all(heard)) {
    for (const [slot, admitted] of Object.entries(one.slots)) slots[slot] = (slots[slot] ?? 0) + admitted
    for (const time of one.times) times.push(time)
    for (const [name, count] of Object.entries(one.counters)) counters[name] = (counters[name] ?? 0) + count
  }
  return { slots: Array.from(slots, (one) => one ?? 0), times: times.sort((a, b) => a - b), counters }
}

const sum = (numbers) => numbers.reduce((all, one) => all + one, 0)

// The most that was admitted in a second, wherever it begins.
function mostInASecond(slots) {
  const length = 1000 / SLOT
  let [most, now] = [0, 0]
  for (const [i, one] of slots.entries()) {
    now += one - (i >= length ? slots[i - length] : 0)
    most = Math.max(most, now)
  }
  return most
}

// User and system time of a process, in ms. The kernel counts in ticks of 10 ms.
function cpuOf(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

async function fleet() {
  const { processes, rate, demand, seconds, warm } = FLEET
  for (const way of WAYS) {
    const server = await startServer()
    const { port } = server
    const calls = async () => Number(/cmdstat_rl\.gcra:calls=(\d+)/.exec(await server.cli('INFO', 'commandstats'))?.[1] ?? 0)
    let [cpu, sent, length] = [0, 0, 0]
    const job = { port, seconds, gap: (1000 * processes) / demand, way, limit: `${rate}/s` }
    const { slots, times, counters } = await run(job, processes, async (begin) => {
      await sleep(begin + warm * 1000 - Date.now())
      ;[cpu, sent, length] = [cpuOf(server.process.pid), await calls(), Date.now()]
      await sleep(begin + seconds * 1000 - 500 - Date.now())
      ;[cpu, sent, length] = [cpuOf(server.process.pid) - cpu, (await calls()) - sent, (Date.now() - length) / 1000]
    })
    await server.stop()
    const admitted = sum(slots.slice((warm * 1000) / SLOT, (seconds * 1000) / SLOT)) / (seconds - warm)
    const asked = counters.asked / seconds
    const at = (part) => `${(times[Math.floor(times.length * part)]).toFixed(2)} ms`
    console.log(`${way}(), ${processes} processes, ${rate}/s, ${asked.toFixed(0)}/s of demand, ${CLIENT}:`)
    console.log(`  ${admitted.toFixed(0)}/s admitted (${((100 * admitted) / rate).toFixed(1)} %); ${(sent / length).toFixed(0)} calls/s sent, ${((asked * length) / sent).toFixed(1)} answered for each`)
    console.log(`  at most ${mostInASecond(slots)} in a second; the bound is ${rate + rate + rate / 10}`)
    console.log(`  the server: ${(cpu / length / 10).toFixed(1)} % of a core; a call: p50 ${at(0.5)}, p99 ${at(0.99)}`)
  }
}

async function away() {
  const { processes, rate, demand, before, away, after } = AWAY
  for (const way of WAYS) {
    const server = await startServer()
    const { port } = server
    const job = { port, seconds: before + away + after, gap: (1000 * processes) / demand, way, limit: `${rate}/s`, share: true }
    const { slots } = await run(job, processes, async (begin) => {
      await sleep(begin + before * 1000 - Date.now())
      server.process.kill('SIGSTOP')
      await sleep(away * 1000)
      server.process.kill('SIGCONT')
    })
    await server.stop()
    const each = Array.from({ length: before + away + after }, (_, second) => sum(slots.slice((second * 1000) / SLOT, ((second + 1) * 1000) / SLOT)))
    const part = (from, to) => each.slice(from, to).join(' ')
    console.log(`${way}(), ${processes} processes with a share, ${rate}/s, ${demand}/s of demand, ${CLIENT}. Admitted in each second:`)
    console.log(`  before      ${part(0, before)}`)
    console.log(`  stopped     ${part(before, before + away)}`)
    console.log(`  after it    ${part(before + away)}`)
  }
}

if (process.env.WORKER) process.once('message', worker)
else {
  const parts = { tryTake, fleet, away }
  for (const name of process.argv.length > 2 ? process.argv.slice(2) : Object.keys(parts)) await parts[name]()
}
