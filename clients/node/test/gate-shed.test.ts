import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { gateOn, user } from './gate-harness.js'
import { startServer } from './servers.js'

describe('a shedder of a gate that fails', () => {
  test('a shedder without an answer sheds nothing, unless the limiter fails closed', async (t) => {
    const shed = { key: 'fleet', utilization: () => 1, tier: () => 1, tiers: 1 }
    for (const [fail, status] of [['open', undefined], ['closed', 503]] as const) {
      const { gate, lines } = gateOn(t, 1, [], { shed, fail, timeoutMs: 100 })
      const { refusal, headers } = await gate.enter({}, undefined)
      assert.deepEqual([refusal?.status, headers['Retry-After']], [status, status && '1'])
      assert.ok(lines.some((line) => line.includes('RL.SHED at localhost:1: failed ')), lines.join())
    }
  })

  test('a shedder whose functions fail sheds nothing, and the rules are asked all the same', async (t) => {
    const own = await startServer()
    t.after(() => own.stop())
    const fails = (): never => {
      throw new Error('no gauge')
    }
    const fine = { key: 'fleet', utilization: () => 0, tier: () => 1, tiers: 2 }
    const wrong: [object, RegExp][] = [
      [{ utilization: () => NaN }, /RL.SHED at .*: nothing is shed: shed.utilization must return a number, not NaN$/],
      [{ utilization: fails }, /RL.SHED at .*: nothing is shed: no gauge/],
      [{ tier: fails }, /nothing is shed: no gauge/],
      [{ tier: () => 3 }, /nothing is shed: shed.tier must be an integer between 1 and 2, not 3/],
    ]
    for (const [part, line] of wrong) {
      const shed = { ...fine, ...part }
      const open = gateOn(t, own.port, [{ name: 'rate', key: user, limit: '1/h' }], { shed })
      const statuses = []
      for (let i = 0; i < 2; i += 1) statuses.push((await open.gate.enter({ user: 'ann' }, undefined)).refusal?.status)
      assert.deepEqual(statuses, [undefined, 429])
      assert.match(open.lines.join(), line)
      const closed = gateOn(t, own.port, [], { shed, fail: 'closed' })
      assert.equal((await closed.gate.enter({}, undefined)).refusal, undefined)
      assert.match(closed.lines.join(), line)
    }
    const busy = gateOn(t, own.port, [], { shed: { ...fine, utilization: () => 7 } })
    assert.deepEqual([(await busy.gate.enter({}, undefined)).refusal, busy.lines], [undefined, []])
  })
})
