/** Every generated method, called on a server, with each client. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Commands, Concurrent, Gcra, Limit, Penalty, Sketch, TokenBucket } from 'redis-ratelimit'
import { KINDS, type Made } from './kinds.js'
import { startServer, type Server } from './servers.js'

/** The names of the commands that a client was given. */
type Sent = Set<string>

/** Commands that note which methods were called, and what was sent. */
function noting(commands: Commands, methods: Set<string>): Commands {
  return new Proxy(commands, {
    get(target, name: string) {
      const method = Reflect.get(target, name) as (...args: unknown[]) => unknown
      methods.add(name)
      return (...args: unknown[]) => Reflect.apply(method, target, args)
    },
  })
}

async function sentBy(server: Server): Promise<Sent> {
  const stats = await server.cli('INFO', 'commandstats')
  return new Set([...stats.matchAll(/^cmdstat_((?:rl|cl)\.[a-z]+)/gm)].map(([, name = '']) => name))
}

for (const kind of KINDS) {
  describe(`every command with ${kind.name}`, () => {
    let server: Server
    let made: Made
    let commands: Commands
    const folder = mkdtempSync(join(tmpdir(), 'policies-'))
    const methods = new Set<string>()
    const key = () => `k:${randomUUID()}`
    before(async () => {
      server = await startServer(['--ratelimit.policy-file', join(folder, 'policies')])
      await server.cli('CONFIG', 'SET', 'ratelimit.top', '100')
      made = await kind.client(server.port)
      commands = noting(new Commands(made.redis), methods)
    })
    after(async () => {
      made?.close()
      await server?.stop()
      rmSync(folder, { recursive: true, force: true })
    })

    test('buckets and GCRA', async () => {
      const bucket = await commands.tokenBucket(key(), 5, 1, '1m', { batch: true, cost: 2 })
      assert.deepEqual([bucket.allowed, bucket.limit, bucket.remaining], [true, 5, 3])
      const queue = key()
      await commands.leakyBucket(queue, 2, 1, '1s')
      const second = await commands.leakyBucket(queue, 2, 1, '1s')
      assert(second.allowed && second.retryAfter !== null && second.retryAfter > 0, 'it waits for its turn')
      const one = await commands.gcra(key(), 9, 10, '1s', { at: 1700002800000000 })
      assert.deepEqual([one.allowed, one.limit, one.remaining, one.retryAfter, one.resetAfter], [true, 10, 9, 0, 100])
    })

    test('options change what a call does', async () => {
      const at = { at: 1700002800000000 }
      const own = key()
      const part = await commands.gcra(own, 9, 10, '1s', { ...at, cost: 15, partial: true })
      assert.deepEqual([part.allowed, part.granted, part.remaining], [true, 10, 0])
      const refused = await commands.gcra(own, 9, 10, '1s', at)
      assert.deepEqual([refused.allowed, refused.retryAfter], [false, 100])
      const never = await commands.gcra(own, 9, 10, '1s', { ...at, cost: 11 })
      assert.deepEqual([never.allowed, never.retryAfter], [false, null])
      const booked = await commands.gcra(own, 9, 10, '1s', { ...at, reserve: true, maxwait: '1s' })
      assert.deepEqual([booked.allowed, booked.retryAfter], [true, 100])
      const forced = await commands.gcra(own, 9, 10, '1s', { ...at, cost: 5, force: true })
      assert.deepEqual([forced.allowed, forced.remaining], [true, 0])
    })

    test('windows, logs and gates', async () => {
      assert.equal((await commands.fixedWindow(key(), 3, '1m', { aligned: true })).remaining, 2)
      assert.equal((await commands.slidingWindow(key(), 3, '1m', { precision: '1s' })).remaining, 2)
      assert.equal((await commands.slidingLog(key(), 3, '1m', { gap: '5ms', countrefused: true })).resetAfter, 60_000)
      assert.equal(
        (await commands.calendar(key(), 1000, 'MONTH', { zone: 'Europe/Lisbon', anchor: 31, cost: 999 })).remaining,
        1,
      )
      assert.equal((await commands.uniform(key(), '2s', { reserve: true })).allowed, true)
      assert.equal((await commands.smooth(key(), 2, '1s', { warmup: '4s', factor: 2.5, maxwait: '1m' })).allowed, true)
      assert.equal((await commands.penalty(key(), 1, '10m', '10m', { grow: 2, max: '1d', forgive: '1h' })).allowed, false)
      assert.equal((await commands.sketch(key(), '203.0.113.7', 0, 1, '1m', { width: 1024, depth: 3 })).allowed, true)
    })

    test('leases', async () => {
      const [pool, other] = [`{p}${randomUUID()}`, `{p}${randomUUID()}`]
      assert.equal((await commands.concurrent(pool, 2, '1m', 'a', { reserved: 1 })).allowed, true)
      assert.equal((await commands.concurrent(pool, 2, '1m', 'b', { reserved: 1 })).allowed, false)
      assert.equal((await commands.concurrent(pool, 2, '1m', 'b', { reserved: 1, critical: true })).allowed, true)
      assert.deepEqual([await commands.renew(pool, '1m', 'a'), await commands.renew(pool, '1m', 'c')], [true, false])
      assert.deepEqual([await commands.release(pool, 'a'), await commands.release(pool, 'a')], [true, false])
      await commands.concurrent(other, 2, '1m', 'b')
      assert.equal(await commands.multiRelease([pool, other], 'b'), 2)
    })

    test('looks and refunds', async () => {
      const own = key()
      await commands.gcra(own, 9, 10, '1h', { cost: 4 })
      assert.equal((await commands.peek(own, '10/h', { cost: 0 })).remaining, 6)
      const back = await commands.refund(own, new Gcra(9, 10, '1h'), { cost: 3 })
      assert.equal(back.remaining, 9)
      assert.equal(back.headers('x')['RateLimit-Policy'], '"x";q=10;w=3600', 'the limiter is known')
      assert.equal((await commands.peek(key(), new Sketch('item', 0, 1, '1m'))).allowed, true)
      const info = await commands.info(own)
      assert.deepEqual([info?.['limiter'], info?.['length_ms']], ['GCRA', 3600000])
      assert.equal(await commands.info(key()), null)
    })

    test('holds', async () => {
      const own = key()
      const hold = { id: 'h1', ttl: '10m' }
      await commands.tokenBucket(own, 1000, 1, '1d', { cost: 800, hold })
      const settled = await commands.settle(own, 'h1', new TokenBucket(1000, 1, '1d'), 300)
      assert.deepEqual([settled.settled, settled.remaining], [true, 700])
      assert.equal((await commands.settle(own, 'h1', new TokenBucket(1000, 1, '1d'), 300)).settled, false)
    })

    test('several limits at once', async () => {
      const [user, team] = [`{t}${randomUUID()}`, `{t}${randomUUID()}`]
      const limits = [
        new Limit('10/m', { on: 1, cost: 1 }),
        new TokenBucket(1000, 1, '1d'),
        new Limit(new Penalty(3, '1m', '1m'), { shadow: true }),
      ]
      const hold = { id: 'r1', ttl: '10m' }
      const all = await commands.multi([user, team], limits, { cost: 500, hold })
      assert.deepEqual([all.allowed, all.each.map(({ remaining }) => remaining)], [true, [9, 500, 500, 3, 3]])
      assert.deepEqual(
        all.each.map(({ limiter }) => limiter?.name),
        ['GCRA', 'TOKENBUCKET', 'TOKENBUCKET', 'PENALTY', 'PENALTY'],
      )
      const looked = await commands.multiPeek([user], ['10/m'])
      assert.deepEqual([looked.each.length, looked.settled], [1, undefined])
      const settled = await commands.multiSettle([user, team], 'r1', [new TokenBucket(1000, 1, '1d')], { cost: 300 })
      assert.deepEqual([settled.settled, settled.each.map(({ remaining }) => remaining)], [2, [700, 700]])
      assert.equal((await commands.multiRefund([user], ['10/m'], { cost: 1 })).remaining, 10)
    })

    test('policies', async () => {
      assert.equal(await commands.policySet('api', [new TokenBucket(1000, 1, '1d'), new Limit('10/m', { cost: 1 })]), 1)
      assert.equal(
        await commands.policySet('api', [new TokenBucket(1000, 1, '1d'), new Limit('10/m', { cost: 1 })], { version: 7 }),
        7,
      )
      await commands.policySet('pool', [new Concurrent(1, '1m')], { shadow: true })
      assert.deepEqual(await commands.policyList(), { api: 7, pool: 1 })
      const { version, limits } = (await commands.policyGet('api')) ?? {}
      assert.deepEqual([version, String(limits).startsWith('LIMIT TOKENBUCKET')], [7, true])
      assert.equal(await commands.policyGet('none'), null)
      const own = key()
      const asked = await commands.ask(own, 'api', { cost: 500, hold: { id: 'h', ttl: '1m' }, full: true })
      assert.deepEqual([asked.allowed, asked.binding, asked.each?.map(({ remaining }) => remaining)], [true, 2, [500, 9]])
      const settled = await commands.askSettle(own, 'api', 'h', 200)
      assert.deepEqual([settled.settled, settled.each], [1, []])
      assert.equal((await commands.askPeek(own, 'api', { cost: 900 })).allowed, false)
      assert.equal((await commands.askRefund(own, 'api', { cost: 200 })).allowed, true)
      assert.equal((await commands.ask(key(), 'pool', { leaseId: 'a', moreKeys: [key()] })).binding, null)
      assert.equal((await commands.policyStats('api'))?.['admitted'], 1)
      assert.equal(await commands.policySave(), 2)
      assert.equal(await commands.policyDel('pool'), true)
      assert.equal(await commands.policyDel('pool'), false)
      assert.equal(await commands.policyLoad(), 2)
      assert((await commands.policyHelp()).length > 3)
    })

    test('bounded queues', async () => {
      const [stream, list] = [key(), key()]
      assert.equal(
        await commands.xadd(stream, 1, '1700002800000-0', { url: 'https://example.org/', tries: 2 }),
        '1700002800000-0',
      )
      assert.equal(await commands.xadd(stream, 1, '*', { url: 'https://example.org/' }), null)
      assert.equal(await commands.lpush(list, 2, ['a', 'b']), 2)
      assert.equal(await commands.rpush(list, 2, ['c']), null)
    })

    test("redis-cell's command, in ms", async () => {
      for (const throttle of ['throttle', 'clThrottle'] as const) {
        const own = key()
        const first = await commands[throttle](own, 0, 1, 60, { quantity: 1 })
        assert.deepEqual([first.allowed, first.retryAfter, first.resetAfter], [true, 0, 60000])
        const second = await commands[throttle](own, 0, 1, 60)
        assert.equal(second.allowed, false)
        assert(second.retryAfter !== null && second.retryAfter > 50_000)
        assert.equal((await commands[throttle](own, 0, 1, 60, { quantity: 2 })).retryAfter, null)
      }
    })

    test('a call in words', async () => {
      const own = key()
      await commands.gcra(own, 0, 1, '1m')
      const told = await commands.explain('gcra', [own, '0', '1', '1m', 'COST', '0'])
      assert.equal(told[0], 'admitted')
      assert.match(told[1] ?? '', /^1\. GCRA 0 1 1m on .*: admits; 0 of 1 left; fully reset in /)
    })

    test('load shedding, the top and the help', async () => {
      assert.deepEqual(await commands.shed('fleet', 0.95, { tier: 1, tiers: 4 }), { shed: false, chance: 0 })
      const own = key()
      await commands.gcra(own, 0, 1, '1m', { cost: 2 })
      const top = await commands.top({ count: 100 })
      assert(top.some((row) => row.key === own && row.refusals === 1 && row.database === 0 && row.error === 0))
      assert.deepEqual(await commands.top({ previous: true }), [])
      assert.equal(await commands.topReset(), 'OK')
      assert.deepEqual(await commands.top(), [])
      assert((await commands.help({ command: 'gcra' }))[0]?.startsWith('RL.GCRA key'))
      assert((await commands.help()).length > 50)
    })

    test('errors are those of the client', async () => {
      await assert.rejects(commands.apply([[key(), 'no payload']]), /^(?!TypeError)/)
      const text = key()
      await made.raw(['SET', text, 'x'])
      await assert.rejects(commands.gcra(text, 9, 10, '1s'), /^.*WRONGTYPE/)
      for (const bare of ['60', 60 as unknown as string]) {
        await assert.rejects(commands.gcra(text, 15, 30, bare), /period needs a unit: 60ms, 60s or 60m/)
      }
      await assert.rejects(commands.gcra(text, 9, 10, '0'), /period must be from 1ms to 36500d; got '0'/)
    })

    test('a prefix stands before each key', async () => {
      const prefixed = new Commands(made.redis, 'app:')
      const own = key()
      await prefixed.multi([own], ['10/h'])
      assert.equal(await made.raw(['EXISTS', `app:${own}`]), 1)
      assert((await prefixed.peek(own, '10/h', { cost: 0 })).remaining === 9)
    })

    test('none is missing', async () => {
      const all = Object.getOwnPropertyNames(Commands.prototype).filter((name) => name !== 'constructor')
      assert.deepEqual(
        all.filter((name) => !methods.has(name)),
        [],
        'each method was called above',
      )
      const list = (await server.cli('COMMAND', 'LIST', 'FILTERBY', 'MODULE', 'ratelimit')).trim().split('\n')
      const sent = await sentBy(server)
      assert.deepEqual(
        list.filter((name) => !name.includes('|') && !sent.has(name)),
        [],
        'each command was sent',
      )
    })
  })
}
