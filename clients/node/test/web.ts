/** What the middleware of every web framework must do, with real requests to a real server. */

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Concurrent, Gcra, LeakyBucket, SlidingLog, UNLIMITED } from 'redis-ratelimit'
import { startServer, until } from './servers.js'
import type { Make, View } from './web-application.js'
import { failingTests } from './web-failing.js'
import { caller, dial, minute, on, tokens, Web } from './web-harness.js'

/** The tests of a framework. */
export function webSuite(framework: string, make: Make): void {
  describe(`${framework}: the middleware`, () => {
    const web = new Web(make)
    before(() => web.start())
    after(() => web.stop())
    limitTests(web)
    failingTests(web)
  })
}

function limitTests(web: Web): void {
  test('headers count down, and a refusal says when to come back', async (t) => {
    const { ask } = await web.started(t, [minute])
    for (const r of [2, 1, 0]) {
      const { status, headers, body } = await ask()
      assert.deepEqual([status, body], [200, 'ok'])
      assert.equal(headers.get('ratelimit-policy'), '"default";q=3;w=60')
      assert.match(headers.get('ratelimit') ?? '', new RegExp(`^"default";r=${r};t=(60|59)$`))
      assert.equal(headers.get('retry-after'), null)
    }
    const { status, headers, body } = await ask()
    assert.equal(status, 429)
    const wait = Number(headers.get('retry-after'))
    assert.ok(wait > 30 && wait <= 60)
    assert.equal(headers.get('ratelimit'), `"default";r=0;t=${wait}`)
    assert.match(headers.get('content-type') ?? '', /^application\/problem\+json/)
    const type = 'https://iana.org/assignments/http-problem-types#quota-exceeded'
    assert.deepEqual(JSON.parse(body), { type, status: 429, 'violated-policies': ['default'] })
    assert.equal((await ask('/', { 'x-api-key': 'bob' })).status, 200)
  })

  test('a plan chooses the limit, and a rule may not be for a request', async (t) => {
    const plans: Record<string, string> = { free: '2/m', pro: '4/m' }
    const { ask } = await web.started(t, [{ name: 'plan', key: caller, limit: async (view) => plans[view.header('x-plan') ?? ''] ?? UNLIMITED }])
    const admitted = async (plan: string) => {
      const codes = []
      for (let i = 0; i < 5; i++) codes.push((await ask('/', { 'x-plan': plan, 'x-api-key': plan })).status)
      return codes.filter((code) => code === 200).length
    }
    assert.deepEqual([await admitted('free'), await admitted('pro'), await admitted('none')], [2, 4, 5])
    assert.equal((await ask('/', { 'x-plan': 'none' })).headers.get('ratelimit'), null)
  })

  test('a request may cost more, and one that never fits is told no time', async (t) => {
    const { ask } = await web.started(t, [{ name: 'size', key: caller, limit: new Gcra(9, 10, '1h'), cost: (view) => Number(view.header('x-cost')) }])
    assert.match((await ask('/', { 'x-cost': '8' })).headers.get('ratelimit') ?? '', /r=2;/)
    assert.equal((await ask('/', { 'x-cost': '3' })).status, 429)
    assert.equal((await ask('/', { 'x-cost': '2' })).status, 200)
    const never = await ask('/', { 'x-cost': '11' })
    assert.deepEqual([never.status, never.headers.get('retry-after')], [429, null])
  })

  test('all rules admit and are charged, or none is', async (t) => {
    const { ask, left } = await web.started(t, [{ ...minute, limit: new SlidingLog(10, '1m') }, { name: 'one', key: on('/one'), limit: '1/h' }])
    assert.equal((await ask('/one')).headers.get('ratelimit-policy'), '"default";q=10;w=60, "one";q=1;w=3600')
    const { status, headers, body } = await ask('/one')
    assert.deepEqual([status, JSON.parse(body)['violated-policies']], [429, ['one']])
    assert.match(headers.get('ratelimit') ?? '', /^"one";r=0;t=\d+$/)
    assert.equal(await left('default:ann', 'SLIDINGLOG', 10, '1m'), 9)
  })

  test('a budget is settled: finished, broken off, hung up, failed, not counted', async (t) => {
    const { ask, url, left, tokensLeft, settled } = await web.started(t, [{ ...minute, limit: new SlidingLog(100, '1m') }, tokens, { ...tokens, name: 'other', key: on('/throw') }])
    await ask('/spend?tokens=20')
    await settled()
    assert.equal(await tokensLeft(), 980)
    await ask('/spend?tokens=20&fail=10')
    await settled()
    assert.equal(await tokensLeft(), 970)
    const { hangUp } = await dial(url, '/spend?tokens=390')
    assert.equal(await tokensLeft(), 570)
    hangUp()
    await settled()
    const after = await tokensLeft()
    assert.ok(after > 570 && after < 970, String(after))
    // What is not counted is charged as estimated.
    assert.equal((await ask('/throw')).status, 500)
    await settled('other:ann')
    assert.equal(await left('other:ann', 'TOKENBUCKET', 1000, 1, '1h'), 600)
  })

  test('a lease lasts as long as the response, is renewed, and comes back after a hang-up', async (t) => {
    const rule = { name: 'streams', key: caller, limit: new Concurrent(2, '1500ms') }
    const { ask, url, left } = await web.started(t, [rule])
    const held = async () => 2 - (await left('streams:ann', 'CONCURRENT', 2, '1500ms', 'nobody'))
    assert.equal((await ask()).headers.get('ratelimit-policy'), '"streams";q=2;qu="concurrent-requests"')
    await until(async () => (await held()) === 0, 'a release')
    const streams = [await dial(url, '/stream'), await dial(url, '/stream')]
    for (const { head } of streams) assert.match(head, /^HTTP\/1.1 200/)
    await pause(2500)
    const refused = await ask()
    assert.deepEqual([refused.status, refused.headers.get('retry-after'), refused.headers.get('ratelimit')], [429, '1', '"streams";r=0'])
    for (const { hangUp } of streams) hangUp()
    await until(async () => (await held()) === 0, 'a release after the hang-up', 1400)
    assert.equal((await ask('/throw')).status, 500)
    await until(async () => (await held()) === 0, 'a release after an error', 1400)
  })

  test('a client that does not wait for its answer leaves nothing behind', async (t) => {
    const { url, left, tokensLeft, settled } = await web.started(t, [tokens, { name: 'streams', key: caller, limit: new Concurrent(9, '1m') }])
    for (let i = 0; i < 9; i++) {
      const socket = connect(Number(new URL(url).port), '127.0.0.1')
      socket.on('error', () => undefined)
      socket.write('GET /spend?tokens=300 HTTP/1.1\r\nHost: x\r\nx-api-key: ann\r\n\r\n', () => setTimeout(() => socket.destroy(), i))
    }
    await pause(300)
    await until(async () => (await left('streams:ann', 'CONCURRENT', 9, '1m', 'nobody')) === 9, 'a release')
    await settled()
    assert.ok((await tokensLeft()) > 400)
  })

  test('a client that hangs up while the rules are asked, or in a queue, gives back once what they take', async (t) => {
    const own = await startServer()
    t.after(() => own.stop())
    const asked: string[] = []
    const rules = [
      tokens,
      { name: 'streams', key: (view: View) => (asked.push(view.path), caller(view)), limit: new Concurrent(1, '1h') },
      { name: 'queue', key: on('/queued'), limit: new LeakyBucket(9, 1, '1h') },
    ]
    const { ask, url, prefix } = await web.started(t, rules, { port: own.port, timeoutMs: 20_000, fail: 'closed' })
    const left = async (name: string, ...words: string[]) => (await own.cli('RL.PEEK', prefix + name, ...words, 'COST', '0')).split('\n')[2]
    const isReleased = async () => (await left('streams:ann', 'CONCURRENT', '1', '1h', 'nobody')) === '1'
    const calls = async (name: string) => new RegExp(`cmdstat_rl.${name}:calls=(\\d+)`).exec(await own.cli('INFO', 'commandstats'))?.[1]
    const hangUp = async (path: string, meanwhile: () => Promise<unknown>) => {
      asked.length = 0
      const socket = connect(Number(new URL(url).port), '127.0.0.1')
      socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nx-api-key: ann\r\n\r\n`)
      await until(() => asked.includes(path), 'a request')
      await meanwhile()
      socket.destroy()
      await once(socket, 'close')
      await pause(50)
    }
    assert.equal((await ask('/queued')).status, 200)
    await until(isReleased, 'a release')
    await own.cli('CONFIG', 'RESETSTAT')
    own.process.kill('SIGSTOP')
    await hangUp('/spend', () => pause(50)).finally(() => own.process.kill('SIGCONT'))
    await until(isReleased, 'a release after the answer')
    await until(async () => (await left('tokens:ann', 'TOKENBUCKET', '1000', '1', '1h')) === '1000', 'a settlement at 0')
    await hangUp('/queued', () => until(async () => (await calls('multi')) === '2', 'a place in the queue'))
    await until(isReleased, 'a release of what waits for its turn')
    await pause(200)
    assert.deepEqual(await Promise.all(['multi', 'release', 'multisettle'].map(calls)), ['2', '2', '1'])
  })

  test('policies decide, with leases and budgets', async (t) => {
    await web.redis.call('RL.POLICY', 'SET', 'api', 'LIMIT', 'SLIDINGLOG', '4', '1m', 'LIMIT', 'CONCURRENT', '1', '1m')
    await web.redis.call('RL.POLICY', 'SET', 'llm', 'LIMIT', 'TOKENBUCKET', '1000', '1', '1h')
    const { ask, url, tokensLeft, settled } = await web.started(t, [
      { name: 'api', key: caller, policy: (view) => (view.path === '/free' ? UNLIMITED : 'api') },
      { name: 'tokens', key: on('/spend'), policy: 'llm', estimate: (view) => Number(view.query.get('tokens')) + 100 },
    ])
    assert.equal((await ask()).headers.get('ratelimit'), '"api";r=0;t=60')
    const { hangUp } = await dial(url, '/stream')
    assert.equal((await ask()).status, 429)
    assert.equal((await ask('/free')).status, 200)
    hangUp()
    await until(async () => (await ask('/spend?tokens=10')).status === 200, 'a release')
    await settled()
    assert.equal(await tokensLeft(), 990)
  })

  test('half of the load is shed: the less important half', async (t) => {
    const tier = (view: View) => (view.path === '/pay' ? undefined : view.path === '/report' ? 1 : 2)
    const shed = { key: 'fleet', utilization: () => 0.75, tier, tiers: 2, delay: '20ms', ramp: '200ms', retryAfterMs: 7000 }
    const { ask, prefix } = await web.started(t, [minute], { shed })
    // Each report at 1 counts for at most the delay, a tenth of the ramp. Six lead from -0.1 to 0.5.
    for (let i = 0; i < 7; i++) {
      await web.redis.call('RL.SHED', `${prefix}fleet`, 1, 'DELAY', '20ms', 'RAMP', '200ms')
      await pause(21)
    }
    const { status, headers, body } = await ask('/report')
    assert.deepEqual([status, headers.get('retry-after'), headers.get('ratelimit')], [503, '7', null])
    assert.match(body, /temporary-reduced-capacity/)
    assert.deepEqual([(await ask('/page')).status, (await ask('/pay')).status], [200, 200])
  })
}
