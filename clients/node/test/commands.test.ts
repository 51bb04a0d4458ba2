/** Generated methods without a key, and errors, with each client. The others are called on a cluster. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Commands, Concurrent, Limit, TokenBucket } from 'redis-ratelimit'
import { KINDS, type Made } from './kinds.js'
import { startServer, type Server } from './servers.js'

for (const kind of KINDS) {
  describe(`every command with ${kind.name}`, () => {
    let server: Server
    let made: Made
    let commands: Commands
    const folder = mkdtempSync(join(tmpdir(), 'policies-'))
    const key = () => `k:${randomUUID()}`
    before(async () => {
      server = await startServer(['--ratelimit.policy-file', join(folder, 'policies')])
      await server.cli('CONFIG', 'SET', 'ratelimit.top', '100')
      made = await kind.client(server.port)
      commands = new Commands(made.redis)
    })
    after(async () => {
      made?.close()
      await server?.stop()
      rmSync(folder, { recursive: true, force: true })
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

    test('a call in words', async () => {
      const own = key()
      await commands.gcra(own, 0, 1, '1m')
      const told = await commands.explain('gcra', [own, '0', '1', '1m', 'COST', '0'])
      assert.equal(told[0], 'admitted')
      assert.match(told[1] ?? '', /^1\. GCRA 0 1 1m COST 0 on .*: admits; 0 of 1 left; fully reset in /)
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
  })
}
