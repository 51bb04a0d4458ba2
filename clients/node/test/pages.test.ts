/** The programs on the pages: all ```js of a page run one after another, on a server of its own, and have right types. */

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { before, test } from 'node:test'
import { promisify } from 'node:util'
import { freePort, startServer } from './servers.js'

const run = promisify(execFile)
const ROOT = resolve('../..')
const FOLDER = resolve('.test/pages')

// What the pages leave to their readers, and a limiter that has patience with busy machines.
const OWN = `
import assert from 'node:assert/strict'
import { createClient } from 'redis'
import { RateLimiter } from './patient.mjs'

const own = await createClient({ url: 'redis://127.0.0.1:6379' }).connect()
const redis = own
const limiter = new RateLimiter(redis)
const alarm = () => {}
const app = { post: (path, ...handlers) => handlers }
const askModel = async (options) => options
const count = (text) => text.split(' ').length
const makeReport = async (lease) => lease.held
const right = (name, password) => password === name + "'s"
async function* stream(prompt, most) {
  yield* 'what the model says'.split(' ')
}
const work = async (job) => job
class TimeoutError extends Error {}
`
const PATIENT = `
import { RateLimiter as Quick } from 'redis-ratelimit'
export * from 'redis-ratelimit'

export class RateLimiter extends Quick {
  /** @param {ConstructorParameters<typeof Quick>} values */
  constructor(...[client, options]) {
    super(client, { timeoutMs: 3000, connectTimeoutMs: 3000, ...options })
  }
}
`

// What the programs of a page do, once they have run.
const THEN: Record<string, string> = {
  'README.md': `
    const ask = () => fetch('http://127.0.0.1:3000')
    const first = await ask()
    assert.match(first.headers.get('ratelimit') ?? '', /^"api";r=99;t=/)
    assert.equal(await first.text(), 'hello')
    const refused = (await Promise.all(Array.from({ length: 200 }, ask))).filter(({ status }) => status === 429)
    assert.ok(refused.length > 0 && Number(refused[0].headers.get('retry-after')) >= 1)`,
  'clients/node/README.md': `
    const answer = await fetch('http://127.0.0.1:3000')
    assert.match(answer.headers.get('ratelimit') ?? '', /^"default";r=99;t=/)
    assert.equal(await answer.text(), 'hello')`,
  'docs/callers.md': `
    const { createServer } = await import('node:http')
    const statuses = [429, 200]
    const api = createServer((_, response) => {
      const status = statuses.shift() ?? 500
      response.writeHead(status, status === 429 ? { 'Retry-After': '1' } : {}).end('hello')
    })
    await new Promise((listening) => api.listen(3000, '127.0.0.1', () => listening(undefined)))
    assert.equal(await (await request('http://127.0.0.1:3000')).text(), 'hello')
    assert.deepEqual(statuses, [])`,
  'docs/recipes-concurrency.md': `
    assert.equal(await run('acme', 'a job'), true)`,
  'docs/recipes-login.md': `
    const url = 'http://127.0.0.1:3000/login'
    const logIn = (name, password) =>
      fetch(url, { method: 'POST', body: JSON.stringify({ name, password }), headers: { 'Content-Type': 'application/json' } })
    const statuses = async (times, name, password) => {
      const all = []
      for (let i = 0; i < times; i++) all.push((await logIn(name, password)).status)
      return all
    }
    assert.deepEqual(await statuses(6, 'bob', 'a guess'), [401, 401, 401, 401, 401, 429])
    const wait = Number((await logIn('bob', "bob's")).headers.get('retry-after'))
    assert.ok(800 < wait && wait <= 900, String(wait))
    assert.equal((await limiter.peek('fail:bob:127.0.0.1', lockout, { cost: 0 })).allowed, false)
    assert.deepEqual(await statuses(7, 'ann', "ann's"), [200, 200, 200, 200, 200, 200, 200])
    assert.equal((await limiter.peek('failures', new SlidingWindow(600, '1m'))).remaining, 595)
    console.warn = () => {}
    own.on('error', () => {})
    await own.sendCommand(['SHUTDOWN', 'NOSAVE', 'NOW']).catch(() => {})
    assert.equal((await logIn('ann', "ann's")).status, 503)`,
  'docs/recipes-tokens.md': `
    const pieces = []
    for await (const piece of answer('ann', 'red', 'two words', 1000)) pieces.push(piece)
    assert.deepEqual(pieces, ['what', 'the', 'model', 'says'])
    assert.equal((await limiter.peek('team:red', new Calendar(50_000_000, 'MONTH'))).remaining, 49_999_994)
    await assert.rejects(answer('ann', 'red', 'two words', 100_000).next(), Refused)`,
}

const blocks = (page: string) => [...readFileSync(join(ROOT, page), 'utf8').matchAll(/^```(?:js|ts)\n([\s\S]*?)^```/gm)].map(([, code]) => code!)

/** One program of all blocks. A block sees what those before it declare, and may declare it anew. */
function program(page: string): string {
  let scopes = 0
  const inner = blocks(page).map((block) => {
    const code = block
      .replace(/^import \{ (.*) \} from (.*)$/gm, 'const { $1 } = await import($2)')
      .replace(/^import (\w+) from (.*)$/gm, 'const { default: $1 } = await import($2)')
      .replace("'redis-ratelimit'", "'./patient.mjs'")
    // A block that closes its limiter leaves nothing to the others.
    if (code.includes('limiter.close()')) return `{\n${code}}\n`
    scopes += 1
    return `{\n${code}`
  })
  return [OWN, ...inner, THEN[page] ?? '', '}'.repeat(scopes), '\nprocess.exit()\n'].join('')
}

const documents = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' }).sort()
const pages = ['README.md', 'clients/node/README.md', ...documents.filter((file) => file.endsWith('.md')).map((file) => `docs/${file}`)]
const names = new Map(pages.filter((page) => blocks(page).length > 0).map((page) => [page, `${page.replaceAll(/\W/g, '-')}.mjs`]))

before(() => {
  rmSync(FOLDER, { recursive: true, force: true })
  mkdirSync(FOLDER, { recursive: true })
  writeFileSync(join(FOLDER, 'patient.mjs'), PATIENT)
  for (const [page, name] of names) writeFileSync(join(FOLDER, name), program(page))
})

test('the programs have right types', async () => {
  const compilerOptions = {
    ...{ allowJs: true, checkJs: true, noEmit: true, skipLibCheck: true, strict: true, noImplicitAny: false },
    ...{ module: 'node16', target: 'es2022', lib: ['es2023', 'esnext.disposable'], types: ['node'] },
  }
  writeFileSync(join(FOLDER, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.mjs'] }))
  // A compiler that does not run writes nothing about types.
  const ended = ({ code = 0, stdout }: { code?: number; stdout: string }) => ({ code, stdout })
  const compiler = run(process.execPath, ['node_modules/typescript/bin/tsc', '-p', FOLDER])
  assert.deepEqual(await compiler.then(ended, ended), { code: 0, stdout: '' })
})

for (const [page, name] of names) {
  test(`the programs of ${page} run`, async (t) => {
    const server = await startServer()
    t.after(() => server.stop())
    const file = join(FOLDER, `here-${name}`)
    const code = program(page).replaceAll('127.0.0.1:6379', `127.0.0.1:${server.port}`).replaceAll(/\b3000\b/g, String(await freePort()))
    writeFileSync(file, code)
    const { stderr } = await run(process.execPath, [file], { timeout: 60_000 })
    // The package logs calls without an answer.
    assert.equal(stderr, '')
  })
}
