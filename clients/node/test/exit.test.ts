/** A process ends when it has closed its limiter, whatever is left to be repeated. */

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { test, type TestContext } from 'node:test'
import { onCluster, onServer } from './limiters.js'

const CLIENTS = {
  ioredis: `import { Redis } from 'ioredis'; const redis = new Redis(port); const end = () => redis.disconnect()`,
  redis: `import { createClient } from 'redis'
    const redis = await createClient({ url: 'redis://127.0.0.1:' + port }).connect(); const end = () => redis.destroy()`,
}
const WORK = `
  import { RateLimiter } from 'redis-ratelimit'
  const limiter = new RateLimiter(redis, { logger: () => {} })
  await limiter.lease('pool:' + name, { capacity: 1, ttl: '1h' })
  process.kill(server, 'SIGSTOP')
  await limiter.lease('other', { capacity: 1, ttl: '1h' }, () => {})
  process.kill(server, 'SIGCONT')
  await limiter.close()
  end()
  console.log('closed')`

const CLUSTERS = {
  ioredis: `import { Cluster } from 'ioredis'
    const redis = new Cluster([{ host: '127.0.0.1', port }]); const end = () => redis.disconnect(); redis.on('error', () => {})
    await redis.cluster('INFO')`,
  redis: `import { createCluster } from 'redis'
    const redis = await createCluster({ rootNodes: [{ url: 'redis://127.0.0.1:' + port }] }).connect(); const end = () => redis.destroy()`,
}
const SILENT = `
  import { RateLimiter } from 'redis-ratelimit'
  for (const one of silent) process.kill(one, 'SIGSTOP')
  const limiter = new RateLimiter(redis, { timeoutMs: 1000, logger: () => {} })
  await Promise.all(Array.from({ length: 9 }, (_, i) => limiter.limit('key' + i, '9/h', i < 6 ? {} : { wait: '50s' })))
  await limiter.close()
  end()
  console.log('closed')`

onServer('a process', (server) => {
  for (const [name, client] of Object.entries(CLIENTS)) {
    test(`that uses ${name} exits`, async (t) => {
      const values = `const [port, server, name] = [${server.port}, ${server.process.pid}, '${name}']`
      await exits(t, `${values}\n${client}\n${WORK}`).finally(() => server.process.kill('SIGCONT'))
    })
  }
})

onCluster('a process with a cluster', (nodes) => {
  for (const [name, client] of Object.entries(CLUSTERS)) {
    for (const count of [1, 3]) {
      test(`that uses ${name} exits, ${count} of whose 3 nodes are silent`, async (t) => {
        const pids = nodes.slice(0, count).map(({ process: { pid } }) => pid)
        const values = `const [port, silent] = [${nodes[0]!.port}, [${pids.join()}]]`
        try {
          await exits(t, `${values}\n${client}\n${SILENT}`)
        } finally {
          for (const node of nodes) node.process.kill('SIGCONT')
        }
      })
    }
  }
})

/** Runs a program until it exits by itself. */
async function exits(t: TestContext, program: string): Promise<void> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    cwd: resolve('.'),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => child.kill('SIGKILL'))
  let output = ''
  child.stdout.on('data', (text) => (output += String(text)))
  const late = setTimeout(() => child.kill('SIGKILL'), 40_000)
  const [code] = await once(child, 'exit')
  clearTimeout(late)
  assert.deepEqual([output, code], ['closed\n', 0])
}
