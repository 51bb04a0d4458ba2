/** The parts on the way to the server, each by itself: nodes, time-outs, turns and the log. */

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Call } from '../dist/call/call.js'
import { settings } from '../dist/call/settings.js'
import { Core } from '../dist/decide/core.js'
import { real } from '../dist/runtime.js'
import { Link } from '../dist/wire/link.js'
import { Nodes } from '../dist/wire/nodes.js'
import type { OwnClient } from '../dist/wire/own.js'
import { Turns } from '../dist/wire/turns.js'
import { blocked } from '../dist/wire/waits.js'
import { Patience, within } from '../dist/wire/within.js'

test('servers that are gone are forgotten', () => {
  const servers = new Nodes(null, new Core(settings({ logger: () => undefined }, false), () => 0))
  for (let node = 0; node < 1000; node += 1) servers.of(`${node}:1`, { name: 'the cluster', owners: [`${node}:1`] })
  servers.of(undefined, { name: 'the cluster', owners: ['999:1'] })
  assert.equal(servers.size, 2)
})

test('a server that has moved is followed, also if the first attempt fails', async () => {
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  const client = (parts: object) => ({ ready: Promise.resolve(), owners: [], close: () => undefined, ...parts }) as unknown as OwnClient
  const last = client({})
  const clients = [client({ moved: Promise.resolve() }), client({ ready: Promise.reject(new Error('no connection')) }), last]
  const timers: (() => void)[] = []
  let now = 0
  const link = new Link(() => clients.shift()!, 100, { ...real, now: () => now, later: (_, work) => (timers.push(work), () => undefined) })
  await turn()
  now = 1000
  for (const work of timers.splice(0)) work()
  await turn()
  assert.equal(link.client, last)
})

describe('the time of a call', () => {
  const heard = { replies: 0 }

  test('is over at its end', () => {
    assert.equal(new Patience(100, heard, 0).more(101), 0)
  })

  test('is longer by as much as the process was busy, three times', () => {
    const patience = new Patience(100, heard, 0)
    assert.equal(patience.more(180), 80)
    assert.equal(patience.more(280), 50, 'at least')
    assert.equal(patience.more(9000), 100, 'at most')
    assert.equal(patience.more(19_000), 0)
  })

  test('ends if the process is busy no more', () => {
    const patience = new Patience(100, heard, 0)
    assert.equal(patience.more(180), 80)
    assert.equal(patience.more(261), 0)
  })

  test('is longer while replies come in, up to ten times the default', () => {
    const moving = { replies: 0 }
    const patience = new Patience(100, moving, 0)
    let now = 100
    for (;;) {
      moving.replies += 1
      const more = patience.more(now)
      if (more === 0) break
      now += more
    }
    assert.equal(now, 1000)
  })

  test('ends when replies no longer come in', () => {
    const moving = { replies: 7 }
    const patience = new Patience(100, moving, 0)
    moving.replies += 1
    assert.equal(patience.more(100), 50)
    assert.equal(patience.more(150), 0)
  })
})

test('many calls may share a signal, and all end with it', async () => {
  const warnings: Error[] = []
  const warned = (warning: Error) => warnings.push(warning)
  process.on('warning', warned)
  const control = new AbortController()
  const bounds = { ms: 60_000, signal: control.signal, late: () => new Error('late') }
  const calls = Array.from({ length: 50 }, () => within(real, new Promise<never>(() => undefined), bounds))
  await new Promise(setImmediate)
  control.abort(new Error('gone'))
  const reasons = (await Promise.allSettled(calls)).map((one) => one.status === 'rejected' && (one.reason as Error).message)
  assert.deepEqual([new Set(reasons), warnings], [new Set(['gone']), []])
  process.off('warning', warned)
})

test('a call with BLOCK 0 may wait in the server for a minute, and one without BLOCK does not wait', () => {
  const call = () => new Call('', ['RL.GCRA'])
  assert.deepEqual([call(), call().wait('20ms'), call().wait('0')].map(blocked), [0, 20, 60_000])
})

describe('turns', () => {
  const later = () => {
    let resolve = () => {}
    const promise = new Promise<void>((done) => (resolve = done))
    return { promise, resolve }
  }
  const patient = (turn: Promise<void>) => turn
  async function run<T>(turns: Turns, work: () => Promise<T>, patience: (turn: Promise<void>) => Promise<void>): Promise<T> {
    if (!turns.take()) await turns.wait(patience)
    try {
      return await work()
    } finally {
      turns.leave()
    }
  }

  test('at most n work at a time, first come first served', async () => {
    const turns = new Turns(2)
    const works = [later(), later(), later(), later()]
    const begun: number[] = []
    const work = (i: number) => () => (begun.push(i), works[i]!.promise)
    const all = works.map((_, i) => run(turns, work(i), patient))
    await new Promise(setImmediate)
    assert.deepEqual(begun, [0, 1])
    works[1]!.resolve()
    await new Promise(setImmediate)
    assert.deepEqual(begun, [0, 1, 2])
    works.forEach(({ resolve }) => resolve())
    await Promise.all(all)
    assert.deepEqual(begun, [0, 1, 2, 3])
  })

  test('who fails or gives up leaves its turn to the next', async () => {
    const turns = new Turns(1)
    const first = later()
    const fails = run(turns, () => first.promise.then(() => Promise.reject(new Error('failed'))), patient)
    const gone = run(turns, () => assert.fail('no turn'), () => Promise.reject(new Error('gone')))
    const next = run(turns, async () => 'next', patient)
    await assert.rejects(gone, /gone/)
    first.resolve()
    await assert.rejects(fails, /failed/)
    assert.equal(await next, 'next')
  })
})
