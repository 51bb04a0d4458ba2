/** A user with the rights of a row in docs/clients.md can do what the row says, and needs each of them. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { RateLimiter } from 'redis-ratelimit'
import { KINDS, type Kind } from './kinds.js'
import { denied, ROWS, setPolicies, table } from './rights.rows.js'
import { onServer } from './limiters.js'

const RIGHTS = table()

onServer('a user with few rights', (server) => {
  /** Does what a row says with these rights. Returns the commands that were denied, and the error. */
  async function tried(kind: Kind, what: string, rights: string[]) {
    await server.cli('ACL', 'SETUSER', 'app', 'reset', 'on', '>secret', '~limit:*', ...rights)
    await server.cli('CONFIG', 'RESETSTAT')
    const { redis, close } = await kind.client(server.port, { username: 'app', password: 'secret' })
    const prefix = `limit:${randomUUID()}:`
    const limiter = new RateLimiter(redis, { prefix, timeoutMs: 5000, connectTimeoutMs: 5000, logger: () => undefined })
    try {
      const error = await ROWS[what]!(limiter, server).then(() => undefined, (error: unknown) => error)
      return { error, denials: await denied(server) }
    } finally {
      await limiter.close()
      close()
    }
  }

  test('has the rows of the page', () => {
    assert.deepEqual([...RIGHTS.keys()], Object.keys(ROWS))
  })

  for (const kind of KINDS) {
    test(`can do what each row says, on ${kind.name}`, async (t) => {
      for (const [what, rights] of RIGHTS) {
        await t.test(what, async () => assert.deepEqual(await tried(kind, what, rights), { error: undefined, denials: [] }))
      }
    })
  }

  for (const [what, rights] of RIGHTS) {
    for (const right of rights) {
      test(`needs ${right} for: ${what}`, async () => {
        const { denials } = await tried(KINDS[2]!, what, rights.filter((each) => each !== right))
        assert.ok(denials.includes(right.slice(1)), `denied: ${denials.join(' ')}`)
      })
    }
  }

  test('is told which right is missing', async () => {
    const { error } = await tried(KINDS[0]!, 'ready, with policies only', ['+rl.ask'])
    assert.match(String(error), /ConfigurationError: the policy 'api': the server rejects RL.ASKPEEK: NOPERM .*'rl.askpeek'/)
  })
}, setPolicies)
