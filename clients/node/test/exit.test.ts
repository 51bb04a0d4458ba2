/** A process ends when it has closed its limiter, whatever is left to be repeated. */

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { startServer, type Server } from './servers.js'

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

describe('a process', () => {
  let server: Server
  before(async () => (server = await startServer()))
  after(() => server?.stop())

  for (const [name, client] of Object.entries(CLIENTS)) {
    test(`that uses ${name} exits`, async (t) => {
      const program = `const [port, server, name] = [${server.port}, ${server.process.pid}, '${name}']\n${client}\n${WORK}`
      const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
        cwd: resolve('.'),
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      t.after(() => child.kill('SIGKILL'))
      let output = ''
      child.stdout.on('data', (text) => (output += String(text)))
      const late = setTimeout(() => child.kill('SIGKILL'), 20_000)
      const [code] = await once(child, 'exit')
      clearTimeout(late)
      server.process.kill('SIGCONT')
      assert.deepEqual([output, code], ['closed\n', 0])
    })
  }
})
