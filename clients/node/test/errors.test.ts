/** How the errors of clients become those of the package. */

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { inspect } from 'node:util'
import { Unavailable } from 'redis-ratelimit'
import { explained, failureOf as failureAt } from '../dist/decide/failure.js'

const failure = (command: string, error: unknown) => failureAt(command, 'redis:6379', error)

describe('errors', () => {
  test('an error of a socket is no answer', () => {
    for (const [text, maybeSent] of [
      ['read ECONNRESET', true],
      ['connect ECONNREFUSED 127.0.0.1:1', false],
      ['Connection is closed.', true],
    ] as const) {
      const error = failure('RL.GCRA', new Error(text))
      assert(error instanceof Unavailable && error.maybeSent === maybeSent, text)
    }
    const text: unknown = 'a text'
    assert(failure('RL.GCRA', text) instanceof Unavailable)
  })

  test('a name with several addresses, none of which can be reached, was not asked', () => {
    const refused = ['::1', '127.0.0.1'].map((host) => new Error(`connect ECONNREFUSED ${host}:1`))
    const error = failure('RL.GCRA', new AggregateError(refused))
    assert(error instanceof Unavailable && !error.maybeSent)
    assert.equal(error.message, 'RL.GCRA at redis:6379: connect ECONNREFUSED ::1:1; connect ECONNREFUSED 127.0.0.1:1')
    const [first] = refused
    const lost = failure('RL.GCRA', new AggregateError([first, new Error('read ECONNRESET')]))
    assert(lost instanceof Unavailable && lost.maybeSent, 'one of them may have got it')
  })

  test('an error that ioredis wraps is what is in it', () => {
    const wrapped = new Error('Too many Cluster redirections. Last error: ReplyError: TRYAGAIN Multiple keys')
    const error = failure('RL.MULTI', wrapped)
    assert(error instanceof Unavailable && error.kind === 'TRYAGAIN' && !error.maybeSent)
  })

  test('what ioredis says of a lost call is told by its cause', () => {
    const flushed = new Error('Reached the max retries per request limit (which is 0). Refer to "maxRetriesPerRequest" option for details.')
    const lost = failure('RL.GCRA', flushed)
    assert(lost instanceof Unavailable && lost.maybeSent)
    assert.deepEqual([lost.kind, lost.reason], ['connection', 'the connection was lost'])
    const why = explained('RL.GCRA', 'redis:6379', flushed, new Error('read ECONNRESET'))
    assert(why instanceof Unavailable && why.maybeSent)
    assert.equal(why.message, 'RL.GCRA at redis:6379: read ECONNRESET')
    const rejected = explained('RL.GCRA', 'redis:6379', new Error("Stream isn't writeable"), new Error('WRONGPASS invalid'))
    assert(rejected instanceof Unavailable && rejected.kind === 'WRONGPASS')
  })

  test('the command of an error, which may be AUTH, is not kept', () => {
    const auth = Object.assign(new Error('WRONGPASS invalid'), { command: { name: 'auth', args: ['a secret'] } })
    const all = Object.assign(new Error('Failed to refresh slots cache.'), { lastNodeError: auth })
    for (const error of [failure('RL.GCRA', auth), failure('RL.GCRA', all)]) {
      assert.doesNotMatch(inspect(error, { depth: 9, showHidden: true }), /a secret/)
      assert(error.cause instanceof Error)
    }
  })
})
