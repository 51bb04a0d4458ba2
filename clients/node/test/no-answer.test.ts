/** What happens when the server does not answer, with each client. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { inspect } from 'node:util'
import { CallError, Unavailable } from 'redis-ratelimit'
import { eachKind, limiterOn } from './limiters.js'
import { proxyTo } from './proxy.js'
import { freePort, startServer, until } from './servers.js'

const key = () => `user:${randomUUID()}`
const QUICK = { timeoutMs: 200, connectTimeoutMs: 5000 }

eachKind('without an answer', (kind, server) => {
  test('gives up after the time-out, and asks again when the server goes on', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port, QUICK)
    const own = key()
    assert.equal((await limiter.limit(own, '9/h')).answered, true)
    server.process.kill('SIGSTOP')
    const late = await limiter.limit(own, '9/h').finally(() => server.process.kill('SIGCONT'))
    assert.deepEqual([late.allowed, late.answered], [true, false])
    assert.match(late.error?.message ?? '', /^RL\.GCRA at 127.0.0.1:\d+: no reply within 200 ms$/)
    assert(late.error instanceof Unavailable && late.error.kind === 'timeout' && late.error.maybeSent)
    await until(async () => (await limiter.limit(own, '9/h')).answered, 'an answer')
    server.process.kill('SIGSTOP')
    const sooner = await limiter.limit(own, '9/h', { timeoutMs: 60 }).finally(() => server.process.kill('SIGCONT'))
    assert.match(sooner.error?.message ?? '', /no reply within 60 ms$/, 'the time-out of one call')
  })

  test('sends nothing twice when the connection is lost', async (t) => {
    const proxy = await proxyTo(t, server.port)
    const { limiter } = await limiterOn(t, kind, proxy.port, { ...QUICK, timeoutMs: 3000, breaker: null })
    const own = key()
    assert.equal((await limiter.limit(own, '9/h')).remaining, 8)
    server.process.kill('SIGSTOP')
    const lost = limiter.limit(own, '9/h')
    await pause(100)
    proxy.cut()
    const decision = await lost.finally(() => server.process.kill('SIGCONT'))
    assert.deepEqual([decision.answered, (decision.error as Unavailable).kind], [false, 'connection'])
    await until(async () => (await limiter.limit(own, '9/h', { cost: 0 })).answered, 'a connection')
    assert((await limiter.limit(own, '9/h', { cost: 0 })).remaining >= 7, 'charged at most once')
  })

  test('costs the calls under way when a connection is killed, and no others', async (t) => {
    const { limiter, lines } = await limiterOn(t, kind, server.port, { timeoutMs: 5000 })
    assert.equal((await limiter.limit(key(), '9/h')).answered, true)
    let [calls, unanswered] = [0, 0]
    let isOver = false
    const caller = async () => {
      while (!isOver) {
        calls += 1
        if (!(await limiter.limit('user:1', '1000000/s')).answered) unanswered += 1
      }
    }
    const callers = Array.from({ length: 8 }, caller)
    await pause(50)
    await server.cli('CLIENT', 'KILL', 'TYPE', 'normal')
    const before = calls
    await until(() => calls >= before + 100, 'calls after it').finally(() => (isOver = true))
    await Promise.all(callers)
    assert(unanswered <= 8, `${unanswered} of ${calls} calls unanswered`)
    assert.equal(limiter.counters.breakerOpened, 0, lines.join())
  })

  test('replaces a connection that went silent with the first call that it costs', async (t) => {
    const proxy = await proxyTo(t, server.port)
    const { limiter } = await limiterOn(t, kind, proxy.port, QUICK)
    for (let time = 0; time < 3; time += 1) {
      assert.equal((await limiter.limit(key(), '9/h')).answered, true)
      proxy.silence()
      const both = await Promise.all([limiter.limit(key(), '9/h'), pause(50).then(() => limiter.limit(key(), '9/h'))])
      const errors = both.flatMap(({ error }) => (error === undefined || error === null ? [] : [error as Unavailable]))
      assert(errors.some(({ kind }) => kind === 'timeout'))
      assert(errors.every(({ maybeSent }) => maybeSent), 'they were under way there')
      assert.equal((await limiter.limit(key(), '9/h')).answered, true)
    }
    assert.equal(limiter.counters.breakerOpened, 0)
  })

  test('finds the primary that has the address of one that became a replica', async (t) => {
    const second = await startServer()
    t.after(() => second.stop())
    const proxy = await proxyTo(t, server.port)
    const { limiter } = await limiterOn(t, kind, proxy.port, QUICK)
    assert.equal((await limiter.limit(key(), '9/h')).answered, true)
    proxy.leadTo(second.port)
    await server.cli('REPLICAOF', '127.0.0.1', String(await freePort()))
    t.after(() => server.cli('REPLICAOF', 'NO', 'ONE'))
    const { error } = await limiter.limit(key(), '9/h')
    assert(error instanceof Unavailable && error.kind === 'READONLY')
    await pause(200)
    assert.equal((await limiter.limit(key(), '9/h')).answered, true)
    assert.equal(limiter.counters.breakerOpened, 0)
  })

  test('takes wrong credentials for no answer, and logs them; a missing right is an error', async (t) => {
    const closed = await startServer()
    t.after(() => closed.stop())
    await closed.cli('ACL', 'SETUSER', 'default', 'on', 'resetpass', '>secret', '-@all', '+@connection', '+info', '+client')
    for (const password of [undefined, 'wrong', 'secret']) {
      const client = password === undefined ? {} : { password }
      const { limiter, lines } = await limiterOn(t, kind, closed.port, { timeoutMs: 2000, connectTimeoutMs: 2000 }, client)
      const asked = () => limiter.limit(key(), '9/h').then(({ error }) => error!, (error: CallError) => error)
      for (let call = 0; call < 2; call += 1) {
        const error = await asked()
        assert.doesNotMatch(inspect([error, lines], { depth: 9, showHidden: true }), /'(wrong|secret)'/, 'no password')
        if (password === 'secret') assert(error instanceof CallError && error.code === 'NOPERM', error.message)
        else assert(error instanceof Unavailable && /^(NOAUTH|WRONGPASS)$/.test(error.kind) && !error.maybeSent, error.message)
      }
      const { failedOpen, misconfigured, breakerOpened } = limiter.counters
      assert.deepEqual([failedOpen, misconfigured, breakerOpened], password === 'secret' ? [0, 0, 0] : [2, 2, 0])
      if (password !== 'secret') assert.match(lines.join(), /RL\.GCRA 'user…' at .*: failed open: (NOAUTH|WRONGPASS)/)
      await assert.rejects(limiter.ready(), {
        name: 'ConfigurationError',
        message: /the server rejects RL.PEEK: (NOAUTH|WRONGPASS|NOPERM)/,
      })
    }
  })

  test('answers again with the new password, once the old one was changed and is back', async (t) => {
    const guarded = await startServer()
    t.after(() => guarded.stop())
    await guarded.cli('CONFIG', 'SET', 'requirepass', 'first')
    const rotate = async (before: string, now: string) => {
      await guarded.cli('-a', before, 'CONFIG', 'SET', 'requirepass', now)
      await guarded.cli('-a', now, 'CLIENT', 'KILL', 'TYPE', 'normal')
    }
    const { limiter } = await limiterOn(t, kind, guarded.port, {}, { password: 'first' })
    assert.equal((await limiter.limit(key(), '9/h')).answered, true)
    await rotate('first', 'second')
    await until(async () => {
      const { error, allowed } = await limiter.limit(key(), '9/h')
      return allowed && error?.kind === 'WRONGPASS'
    }, 'a rejection')
    await rotate('second', 'first')
    await until(async () => (await limiter.limit(key(), '9/h')).answered, 'an answer')
  })

  test('gives up with a signal', async (t) => {
    const { limiter } = await limiterOn(t, kind, server.port)
    const over = new Error('the client hung up')
    await assert.rejects(limiter.limit(key(), '9/h', { signal: AbortSignal.abort(over) }), over)
    await limiter.limit(key(), '9/h')
    server.process.kill('SIGSTOP')
    const control = new AbortController()
    const asked = limiter.limit(key(), '9/h', { signal: control.signal })
    setTimeout(() => control.abort(over), 50)
    await assert.rejects(asked, over).finally(() => server.process.kill('SIGCONT'))
    assert.deepEqual([limiter.counters.unavailable, limiter.counters.failedOpen], [0, 0])
    assert.equal((await limiter.limit(key(), '9/h')).answered, true)
  })
})
