/** What the middleware of every web framework does beyond the checks of clients/http: hasty clients, wrong rules and calls. */

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Concurrent, LeakyBucket, SlidingLog } from 'redis-ratelimit'
import type { Rule } from 'redis-ratelimit/express'
import { startServer, until } from './servers.js'
import type { Make, View } from './web-application.js'
import { caller, minute, on, tokens, Web } from './web-harness.js'

/** The tests of a framework. */
export function webSuite(framework: string, make: Make): void {
  describe(`${framework}: the middleware`, () => {
    const web = new Web(make)
    before(() => web.start())
    after(() => web.stop())
    tests(web)
  })
}

function tests(web: Web): void {
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

  test('a wrong rule is an exception at the start, which names it', async (t) => {
    const wrong: [Rule<View>[], RegExp][] = [
      [[{ ...minute, limit: new SlidingLog(2 ** 40, '1m') }], /rule 'default': .*SLIDINGLOG.*limit must be an integer/],
      [[{ name: 'api', key: caller, policy: 'nobody' }], /rule 'api': .*no such policy 'nobody'/],
    ]
    for (const [rules, message] of wrong) await assert.rejects(web.started(t, rules), (error: Error) => error.name === 'ConfigurationError' && message.test(error.message))
    const bare = await startServer([], { module: false })
    t.after(() => bare.stop())
    await assert.rejects(web.started(t, [minute], { port: bare.port }), { name: 'ConfigurationError', message: /module/ })
  })

  test('a call that the server rejects is an error, and never let through', async (t) => {
    const { ask, prefix } = await web.started(t, [minute])
    await web.redis.set(`${prefix}default:ann`, 'a string')
    assert.equal((await ask()).status, 500)
    assert.equal((await ask('/', { 'x-api-key': 'bob' })).status, 200)
  })
}
