/** The package as it is published: installed from its tarball, imported and required, with types for both. */

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { startServer, type Server } from './servers.js'

const run = promisify(execFile)
const HERE = resolve('.')
const { exports: EXPORTS, devDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  exports: Record<string, unknown>
  devDependencies: Record<string, string>
}
const PARTS = Object.keys(EXPORTS)
  .filter((part) => part !== './package.json')
  .map((part) => part.replace(/^\./, 'redis-ratelimit'))

const TYPES = `
import { Redis, Cluster } from 'ioredis'
import { Redis as Redis5, Cluster as Cluster5 } from 'ioredis-5'
import { createClient, createCluster } from 'redis'
import { createClient as createClient5, createCluster as createCluster5 } from 'redis-5'
import { Commands, Decision, Gcra, Limit, RateLimiter, type Lease, type RedisClient } from 'redis-ratelimit'

const clients: RedisClient[] = [
  new Redis(), new Redis5(), new Cluster([]), new Cluster5([]), createClient(), createClient5(),
  createClient({ RESP: 2, modules: { cl: {} } }), createClient5({ RESP: 3 }),
  createCluster({ rootNodes: [] }), createCluster5({ rootNodes: [] }),
]
async function use(redis: RedisClient): Promise<string> {
  await using limiter = new RateLimiter(redis, { prefix: 'a:', fail: 'closed', breaker: null, cache: { keys: 5 } })
  const decision: Decision = await limiter.limit('k', new Gcra(9, 10, '1s'), { cost: 2, wait: '5s' })
  const wait: number | null = decision.retryAfter
  const each: readonly Decision[] = (await limiter.limits(['k'], ['10/s', new Limit('10/s', { on: 1 })])).each
  const text: string = await limiter.lease('k', { capacity: 1, ttl: '30s' }, async (lease: Lease) => String(lease.held))
  const count: number = await limiter.budget('k', 'api').hold(5, (hold) => (hold.settle(3), 7))
  await using lease: Lease = await limiter.lease('k', { capacity: 1, ttl: '30s' })
  // @ts-expect-error a limiter is needed
  await limiter.limit('k', 5)
  // @ts-expect-error there is no such option
  new RateLimiter(redis, { timeOut: 5 })
  return [wait, each.length, text, count, lease.lost].join()
}
export const all = clients.map((redis) => [new Commands(redis).gcra('k', 9, 10, '1s'), use(redis)])
`

describe('the tarball', () => {
  let server: Server
  let folder: string
  before(async () => {
    server = await startServer()
    folder = mkdtempSync(join(tmpdir(), 'installed-'))
    writeFileSync(join(folder, 'package.json'), '{ "private": true }')
    const { stdout } = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], { cwd: HERE })
    const [{ filename, files }] = JSON.parse(stdout) as [{ filename: string; files: { path: string }[] }]
    const paths = files.map(({ path }) => path)
    const expected = ['README.md', 'CHANGELOG.md', 'LICENSE-MIT', 'LICENSE-APACHE', 'dist/commands.js', 'dist/index.mjs']
    for (const path of expected) assert(paths.includes(path), path)
    assert(paths.every((path) => path.startsWith('dist/') || !path.includes('/')), 'no sources and no tests')
    await run('npm', ['install', '--prefer-offline', '--no-package-lock', '--no-audit', '--no-fund', join(folder, filename)], { cwd: folder })
    for (const name of [...Object.keys(devDependencies), '@redis/client']) {
      const [scope = '', rest] = name.split('/')
      if (rest !== undefined) await run('mkdir', ['-p', join(folder, 'node_modules', scope)])
      symlinkSync(resolve(HERE, 'node_modules', name), join(folder, 'node_modules', name))
    }
  })
  after(async () => {
    await server?.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  const printed = async (type: string, program: string) => (await run(process.execPath, [`--input-type=${type}`, '-e', program], { cwd: folder })).stdout
  const typeErrors = async (compilerOptions: object, file: string) => {
    const all = { target: 'es2022', types: ['node'], strict: true, noEmit: true, ...compilerOptions }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: all, files: [file] }))
    const tsc = resolve(HERE, 'node_modules/typescript/bin/tsc')
    return (await run(process.execPath, [tsc, '-p', folder]).catch((error: { stdout: string }) => error)).stdout
  }

  test('has one dependency', () => {
    const { dependencies } = JSON.parse(readFileSync(join(folder, 'node_modules/redis-ratelimit/package.json'), 'utf8')) as { dependencies: object }
    assert.deepEqual(Object.keys(dependencies), ['ipaddr.js'])
    assert(!existsSync(join(folder, 'node_modules/redis-ratelimit/node_modules')))
  })

  test('is imported and required, each part of it', async () => {
    for (const part of PARTS) {
      for (const [type, import_] of [['module', `import * as all from '${part}'`], ['commonjs', `const all = require('${part}')`]] as const)
        assert(Number(await printed(type, `${import_}; console.log(Object.keys(all).length)`)) > 0, `${type} ${part}`)
    }
  })

  test('has one copy of its classes for both ways', async () => {
    const program = `
      import { createRequire } from 'node:module'
      import * as imported from 'redis-ratelimit'
      import * as gate from 'redis-ratelimit/gate'
      const required = createRequire(import.meta.url)('redis-ratelimit')
      const error = new required.Unavailable('RL.GCRA', 'timeout', 'late', 'redis:6379', true)
      console.log(error instanceof imported.Unavailable, imported.UNLIMITED === required.UNLIMITED, gate.UNLIMITED === required.UNLIMITED)`
    assert.equal(await printed('module', program), 'true true true\n')
  })

  test('has maps to the lines of the sources, without the sources', () => {
    const map = readFileSync(join(folder, 'node_modules/redis-ratelimit/dist/limiter.js.map'), 'utf8')
    assert.deepEqual(Object.keys(JSON.parse(map) as object).sort(), ['file', 'mappings', 'names', 'sourceRoot', 'sources', 'version'])
  })

  test('works when it is required', async () => {
    const program = `
      const { Redis } = require('ioredis')
      const { RateLimiter, Rate } = require('redis-ratelimit')
      const redis = new Redis(${server.port})
      const limiter = new RateLimiter(redis, { timeoutMs: 5000 })
      limiter.limit('k', new Rate('3/h')).then(async ({ remaining }) => {
        console.log(remaining)
        await limiter.close()
        redis.disconnect()
      })`
    assert.equal(await printed('commonjs', program), '2\n')
  })

  test('has a quick start of at most ten lines that works', async () => {
    const readme = readFileSync(join(folder, 'node_modules/redis-ratelimit/README.md'), 'utf8')
    const start = /```js\n([\s\S]*?)```/.exec(readme)?.[1] ?? ''
    const lines = start.split('\n').filter((line) => line.trim() !== '')
    assert(lines.length > 0 && lines.length <= 10, `${lines.length} lines`)
    writeFileSync(join(folder, 'start.mjs'), start.replace('127.0.0.1:6379', `127.0.0.1:${server.port}`))
    const { stdout } = await run(process.execPath, ['start.mjs'], { cwd: folder })
    const answers = [...stdout.matchAll(/^(true|false) (\d)/gm)].map(([text]) => text)
    assert.deepEqual(answers, ['true 2', 'true 1', 'true 0', 'false 0'])
    assert.match(stdout, /'Retry-After': '(19|20)'/)
  })

  const kinds = [
    ['node16', 'module.mts', 'node16'],
    ['node16', 'common.cts', 'node16'],
    ['bundler', 'bundled.ts', 'preserve'],
  ] as const
  for (const [resolution, file, module] of kinds) {
    test(`has types for ${file}, found the way of ${resolution}`, async () => {
      const parts = PARTS.map((part, i) => `import * as part${i} from '${part}'\nexport { part${i} }`).join('\n')
      writeFileSync(join(folder, file), TYPES + parts)
      const lax = { skipLibCheck: true, preserveSymlinks: true, noUncheckedIndexedAccess: true, exactOptionalPropertyTypes: true }
      assert.equal(await typeErrors({ module, moduleResolution: resolution, lib: ['es2022', 'esnext.disposable'], ...lax }, file), '')
    })
  }

  test('has types without errors of their own, for a library of es2022', async () => {
    writeFileSync(join(folder, 'own.mts'), "export * from 'redis-ratelimit'\n")
    assert.equal(await typeErrors({ module: 'node16', lib: ['es2022'], skipLibCheck: false }, 'own.mts'), '')
  })
})
