/** What the middleware does when something is wrong: a rule, a call, or the server. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Concurrent, SlidingLog } from 'redis-ratelimit'
import type { Rule } from 'redis-ratelimit/express'
import { startServer, until } from './servers.js'
import type { View } from './web-application.js'
import { caller, minute, tokens, type Web } from './web-harness.js'

export function failingTests(web: Web): void {
  test('a wrong rule is an exception at the start, which names it', async (t) => {
    const wrong: [Rule<View>[], RegExp][] = [
      [[{ ...minute, limit: 'a lot' }], /rule 'default': 'a lot'/],
      [[{ ...minute, limit: new SlidingLog(2 ** 40, '1m') }], /rule 'default': .*SLIDINGLOG.*limit must be an integer/],
      [[{ ...minute, limit: new SlidingLog(5, '1m', { countrefused: true }) }], /rule 'default': SLIDINGLOG cannot be asked together/],
      [[{ name: 'api', key: caller, policy: 'nobody' }], /rule 'api': .*no such policy 'nobody'/],
      [[{ ...minute, estimate: 5, limit: new Concurrent(5, '1m') }], /rule 'default': CONCURRENT/],
      [[minute, minute], /two rules have the name 'default'/],
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

  test('without an answer it fails open or closed, and limits again afterwards', async (t) => {
    const own = await startServer()
    t.after(() => own.stop())
    const options = { port: own.port, timeoutMs: 200, breaker: { cooldownMs: 100 } } as const
    const open = await web.started(t, [minute], options)
    const closed = await web.started(t, [minute], { ...options, fail: 'closed' })
    assert.deepEqual([(await open.ask()).status, (await closed.ask()).status], [200, 200])
    await own.stop()
    for (let i = 0; i < 8; i++) {
      const passing = await open.ask()
      assert.deepEqual([passing.status, passing.headers.get('ratelimit')], [200, null])
      const refused = await closed.ask()
      assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1'])
      assert.deepEqual(JSON.parse(refused.body)['violated-policies'], [])
    }
    assert.ok(open.lines.length > 0 && open.lines.some((line) => line.includes('RL.MULTI')))
    const again = await startServer([], { port: own.port })
    t.after(() => again.stop())
    for (const { ask } of [open, closed]) await until(async () => (await ask()).headers.has('ratelimit'), 'a way back')
  })

  test('a server that hangs costs a time-out, and what it takes later is given back', async (t) => {
    const own = await startServer()
    t.after(() => own.stop())
    const rules = [{ name: 'streams', key: caller, limit: new Concurrent(2, '1m') }, tokens]
    const { ask, prefix } = await web.started(t, rules, { port: own.port, timeoutMs: 150, breaker: null })
    assert.equal((await ask()).status, 200)
    own.process.kill('SIGSTOP')
    const codes = await Promise.all([ask('/spend?tokens=30'), ask('/spend?tokens=30')])
    own.process.kill('SIGCONT')
    assert.deepEqual(codes.map(({ status }) => status), [200, 200])
    const peek = async (name: string, ...words: string[]) =>
      (await own.cli('RL.PEEK', `${prefix}${name}:ann`, ...words, 'COST', '0')).split('\n')[2]
    await until(async () => (await peek('streams', 'CONCURRENT', '2', '1m', 'nobody')) === '2', 'a release')
    await until(async () => (await peek('tokens', 'TOKENBUCKET', '1000', '1', '1h')) === '940', 'a settlement')
  })
}
