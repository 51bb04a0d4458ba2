// What a bad day of the server costs, by client: one table. The servers are those of the tests.
//
//   RATELIMIT_MODULE=... npm run faults [-- part of a fault's name]
//
// Eight callers ask one call after another, or as the fault's name says, and fail open. Meanwhile twelve leases with a ttl of 3 s are held. A row has the
// calls without an answer, the leases that were lost, the most connections at once, the longest call in ms, and after how many
// seconds from the end of the fault every call was answered again.

import { connect } from 'node:net'
import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises'
import { RateLimiter } from 'redis-ratelimit'
import { KINDS } from '../.test/kinds.js'
import { proxyTo } from '../.test/proxy.js'
import { startCluster, startServer, until } from '../.test/servers.js'

const CALLERS = 8
const LEASES = 12
const TTL = '3s'
// How long calls go on before a fault and after it, in ms.
const BEFORE = 300
const AFTER = 1500

const kill = async (server) => void (await server.cli('CLIENT', 'KILL', 'TYPE', 'normal'))
const stopped = async (server, ms) => {
  server.process.kill('SIGSTOP')
  await pause(ms)
  server.process.kill('SIGCONT')
}

// Each gets a world, makes the fault, and returns when it is over.
const FAULTS = {
  'all connections killed once': ({ server }) => kill(server),
  'killed five times a second, for 2 s': async ({ server }) => {
    for (let i = 0; i < 10; i += 1) await Promise.all([kill(server), pause(200)])
  },
  'the server stops for 4 s (SIGSTOP)': ({ server }) => stopped(server, 4000),
  'maxclients reached by 32 calls that wait': async ({ server, limiter }) => {
    const connected = /connected_clients:(\d+)/.exec(await server.cli('INFO', 'clients'))[1]
    await server.cli('CONFIG', 'SET', 'maxclients', String(Number(connected) + 4))
    const waits = Array.from({ length: 32 }, () => limiter.limit('full', '1/h', { wait: '1s' }))
    await Promise.all(waits)
  },
  'the password is another one for 1 s': async ({ server }) => {
    await server.cli('CONFIG', 'SET', 'requirepass', 'another')
    await server.cli('-a', 'another', 'CLIENT', 'KILL', 'TYPE', 'normal')
    await pause(1000)
    await server.cli('-a', 'another', 'CONFIG', 'SET', 'requirepass', '')
  },
  'started again without the module, for 1 s': async (world) => {
    const { port } = world.server
    await world.server.stop()
    const bare = await startServer([], { module: false, port })
    await pause(1000)
    await bare.stop()
    world.server = await startServer([], { port })
  },
  '200 waits that are cancelled': async ({ server, limiter }) => {
    const held = await limiter.lease('pool', { capacity: 1, ttl: '20s' })
    const control = new AbortController()
    const options = { capacity: 1, ttl: '20s', wait: '15s', signal: control.signal }
    const waits = Array.from({ length: 200 }, () => limiter.lease('pool', options).catch(() => undefined))
    await pause(1000)
    await server.cli('CONFIG', 'RESETSTAT')
    control.abort()
    await Promise.all(waits)
    await pause(1000)
    const [, releases = '0'] = /cmdstat_rl\.release:calls=(\d+)/i.exec(await server.cli('INFO', 'commandstats')) ?? []
    await held.release()
    return `${releases} releases`
  },
  'a replica is promoted': (world) => takenOver(world, true),
  'a primary is killed, and its replica takes over': (world) => takenOver(world, false),
  'one node of three stops for 4 s': async ({ nodes, limiter }) => {
    const held = Array.from({ length: LEASES }, (_, i) => limiter.connected.channel.nodeOf(`lease:${i}`))
    await stopped(nodes[0], 4000)
    return `it has ${held.filter((node) => node.endsWith(`:${nodes[0].port}`)).length} of the leases`
  },
  'killed, and another one 1 s later, behind one address': async ({ server, other, proxy }) => {
    await server.stop()
    await pause(1000)
    proxy.leadTo(other.port)
  },
  'the server stops for 4 s, and its backlog is full': async ({ server }) => {
    const filling = Array.from({ length: 64 }, () => connect(server.port, '127.0.0.1').on('error', () => undefined))
    await stopped(server, 4000)
    for (const socket of filling) socket.destroy()
  },
  'one address swapped, 8 callers each 10 ms': swapped,
  'one address swapped, a caller each 250 ms': swapped,
  'connections behind one address go silent, 8 callers each 10 ms': ({ proxy }) => proxy.silence(),
  'connections behind one address go silent, a caller each 300 ms': ({ proxy }) => proxy.silence(),
  'connections behind one address go silent, a caller each 2 s': ({ proxy }) => proxy.silence(),
}

// How many callers ask, how often, and how long after the fault, where the name of a fault says it. Times are in ms.
const PACES = { 'each 10 ms': [8, 10, 5000], 'each 250 ms': [1, 250, 10_000], 'each 300 ms': [1, 300, 6000], 'each 2 s': [1, 2000, 14_000] }
const paceOf = (name) => Object.entries(PACES).find(([words]) => name.endsWith(words))?.[1] ?? [CALLERS, 0, AFTER]

// The primary becomes a replica, and new connections to its address lead to another one.
async function swapped({ server, other, proxy }) {
  await other.cli('REPLICAOF', 'NO', 'ONE')
  proxy.leadTo(other.port)
  await server.cli('REPLICAOF', '127.0.0.1', String(other.port))
}

// Until the other nodes know that the replica of the first node has its slots.
async function takenOver({ nodes }, isPlanned) {
  const [first, second, third, replica] = nodes
  if (isPlanned) await replica.cli('CLUSTER', 'FAILOVER')
  else await first.stop()
  const knows = async (node) => new RegExp(`:${replica.port}@\\S+ (myself,)?master .* \\d+-\\d+`).test(await node.cli('CLUSTER', 'NODES'))
  const all = async () => (await Promise.all([second, third, replica].map(knows))).every(Boolean)
  await until(async () => (await all()) && (await replica.cli('CLUSTER', 'INFO')).includes('cluster_state:ok'), 'a failover')
}

/** A server or a cluster, and a limiter on it. */
async function worldOf(kind, name) {
  const replica = name.includes('replica')
  const isCluster = replica || name.includes('node of three')
  const cluster = isCluster ? await startCluster({ replica }) : undefined
  const server = cluster?.nodes[1] ?? (await startServer(name.includes('backlog') ? ['--tcp-backlog', '4'] : []))
  const ends = []
  const isProxied = name.includes('one address')
  const other = isProxied ? await startServer() : undefined
  if (name.includes('swapped')) {
    await other.cli('REPLICAOF', '127.0.0.1', String(server.port))
    await until(async () => (await other.cli('INFO', 'replication')).includes('master_link_status:up'), 'a replica')
  }
  const proxy = isProxied ? await proxyTo({ after: (end) => ends.push(end) }, server.port) : undefined
  const made = await (isCluster ? kind.cluster(cluster.port) : kind.client(proxy?.port ?? server.port))
  const limiter = new RateLimiter(made.redis, { logger: () => undefined })
  await limiter.ready({ required: true })
  const world = { server, nodes: cluster?.nodes, limiter, other, proxy }
  const stop = async () => {
    await limiter.close()
    made.close()
    for (const end of ends) end()
    await other?.stop()
    await (cluster ?? world.server).stop()
  }
  return { world, stop }
}

/** Calls until `isOver`, and what came of them. */
async function traffic({ limiter }, [callers, every], isOver) {
  const counts = { calls: 0, unanswered: 0, longest: 0, last: 0 }
  const caller = async (number) => {
    for (let call = 0; !isOver(); call += 1) {
      const began = performance.now()
      const { answered } = await limiter.limit(`user:${number}:${call % 100}`, '1000000/s')
      const now = performance.now()
      counts.calls += 1
      counts.longest = Math.max(counts.longest, now - began)
      if (!answered) Object.assign(counts, { unanswered: counts.unanswered + 1, last: now })
      await (every === 0 ? turn() : pause(every))
    }
  }
  await Promise.all(Array.from({ length: callers }, (_, number) => caller(number)))
  return counts
}

async function row(kind, name, fault) {
  const { world, stop } = await worldOf(kind, name)
  let isOver = false
  let connections = 0
  const look = async () => {
    while (!isOver) {
      const answer = await world.server.cli('INFO', 'clients').catch(() => '')
      const [, now = '0'] = /connected_clients:(\d+)/.exec(answer) ?? []
      // Without this one, and that of the application.
      connections = Math.max(connections, Number(now) - 2)
      await pause(100)
    }
  }
  try {
    // A lone caller is alone: the renewals of leases would notice a silent connection before it does.
    const held = name.includes('a caller') ? 0 : LEASES
    const leases = await Promise.all(Array.from({ length: held }, (_, i) => world.limiter.lease(`lease:${i}`, { capacity: 1, ttl: TTL })))
    const pace = paceOf(name)
    const going = traffic(world, pace, () => isOver)
    const looking = look()
    await pause(BEFORE)
    const note = await fault(world)
    const ended = performance.now()
    await pause(pace[2])
    isOver = true
    const { calls, unanswered, longest, last } = await going
    await looking
    const lost = leases.filter((lease) => lease.lost).length
    await Promise.all(leases.map((lease) => lease.release()))
    const again = Math.max(0, (last - ended) / 1000).toFixed(1)
    const cells = [`${unanswered} of ${calls}`, `${lost} of ${held}`, connections, Math.round(longest), again]
    console.log(`| ${name}${note === undefined ? '' : `: ${note}`} | ${kind.name} | ${cells.join(' | ')} |`)
  } finally {
    isOver = true
    await stop()
  }
}

console.log('| fault | client | unanswered | leases lost | connections | longest call | answered again after |')
console.log('|---|---|--:|--:|--:|--:|--:|')
const [only = ''] = process.argv.slice(2)
const kinds = KINDS.filter(({ name }) => name.endsWith('6'))
for (const [name, fault] of Object.entries(FAULTS)) if (name.includes(only)) for (const kind of kinds) await row(kind, name, fault)
