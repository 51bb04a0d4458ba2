/** Gates on a real server: turns, budgets, what is wrong, and streams of HTTP/2. Cases of the contract show the rest. */

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, constants, createServer, type Http2ServerRequest } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { Concurrent, FixedWindow, LeakyBucket, RateLimiter, TokenBucket, UNLIMITED, type RateLimiterOptions } from 'redis-ratelimit'
import { endWith, Gate, Stack, type GateOptions, type Rule } from 'redis-ratelimit/gate'
import { onServer } from './limiters.js'
import { quiet } from './rate-limiter-flexible.clients.js'
import { until } from './servers.js'

/** The request of these tests says who asks. */
interface Asking {
  user?: string
}

const user = ({ user }: Asking) => user ?? UNLIMITED

let number = 0

interface Options<R> extends RateLimiterOptions {
  shed?: GateOptions<R>['shed']
}

/** A gate with a prefix of its own, and what is stored under it. */
function gateOn<R = Asking>(t: TestContext, port: number, rules: Rule<R>[], { shed, ...options }: Options<R> = {}) {
  const lines: string[] = []
  const prefix = `g${number++}:`
  // Tests wait longer than a service would: a machine may be busy.
  const all = { prefix, timeoutMs: 3000, logger: (line: string) => lines.push(line), ...options }
  const redis = quiet(new Redis(port, { lazyConnect: true }))
  const limiter = new RateLimiter(redis, all)
  t.after(async () => {
    redis.disconnect()
    await limiter.close()
  })
  const left = async (key: string, ...words: (string | number)[]) => ((await redis.call('RL.PEEK', prefix + key, ...words, 'COST', 0)) as number[])[2]
  return { gate: new Gate<R>({ limiter, rules, shed }), limiter, lines, left }
}

onServer('a gate on one server', (server) => {
  const made = (t: TestContext, rules: Rule<Asking>[], options = {}) => gateOn(t, server.port, rules, options)

  test('a request is charged each time, also if an object comes again', async (t) => {
    const { gate, left, lines } = made(t, [{ name: 'messages', key: user, limit: new FixedWindow(2, '1h') }])
    const socket = { user: 'ann' }
    const entered = async () => (await gate.enter(socket)).refusal?.status
    assert.deepEqual([await entered(), await entered(), await entered(), await entered()], [undefined, undefined, 429, 429])
    assert.deepEqual([await left('messages:ann', 'FIXEDWINDOW', 2, '1h'), lines], [0, []])
  })

  test('what is queued or booked waits for its turn', async (t) => {
    const { gate } = made(t, [{ name: 'queue', key: user, limit: new LeakyBucket(2, 1, '300ms') }])
    await gate.enter({ user: 'ann' })
    const passage = await gate.enter({ user: 'ann' })
    assert.ok(passage.wait > 200 && passage.wait <= 300, String(passage.wait))
    const begun = performance.now()
    await passage.turn()
    assert.ok(performance.now() - begun > passage.wait - 10)
  })

  test('who waits in a queue is told when the limiter closes', { timeout: 20_000 }, async (t) => {
    const { gate, limiter } = made(t, [{ name: 'queue', key: user, limit: new LeakyBucket(2, 1, '1h') }])
    await gate.enter({ user: 'ann' })
    const turn = (await gate.enter({ user: 'ann' })).turn()
    await Promise.all([limiter.close(), assert.rejects(turn, { name: 'Closed' })])
  })

  test('what ends before its turn gives back its budget, and waits no longer', async (t) => {
    const rules: Rule<Asking>[] = [
      { name: 'queue', key: user, limit: new LeakyBucket(9, 1, '1h') },
      { name: 'tokens', key: user, limit: new TokenBucket(100, 1, '1h'), estimate: 40 },
    ]
    const { gate, left } = made(t, rules)
    const [first, second] = [await gate.enter({ user: 'ann' }), await gate.enter({ user: 'ann' })]
    assert.equal(await first.turn(), true)
    await first.end()
    const turn = second.turn()
    await second.end()
    assert.deepEqual([await turn, await second.turn(), await left('tokens:ann', 'TOKENBUCKET', 100, 1, '1h')], [false, false, 60])
  })

  test('a request is over when the server has taken back its lease', async (t) => {
    const { gate } = made(t, [{ name: 'jobs', key: user, limit: new Concurrent(1, '1m') }])
    const passage = await gate.enter({ user: 'ann' })
    server.process.kill('SIGSTOP')
    const ends = passage.end().then(() => 'over')
    const first = await Promise.race([ends, pause(50, 'under way')]).finally(() => server.process.kill('SIGCONT'))
    assert.deepEqual([first, await ends], ['under way', 'over'])
  })

  for (const counted of [undefined, 30]) {
    test(`what ends in front of a later gate is charged what is counted, here ${counted ?? 'nothing'}`, async (t) => {
      const first = made(t, [{ name: 'tokens', key: user, limit: new TokenBucket(100, 1, '1h'), estimate: 40 }])
      const { gate } = made(t, [{ name: 'queue', key: () => 'all', limit: new LeakyBucket(9, 1, '1h') }])
      await gate.enter({})
      const entered = async (user: string) => {
        const [request, stack] = [{ user }, new Stack()]
        const one = await first.gate.enter(request, undefined, stack)
        if (counted !== undefined) one.spent['tokens'] = counted
        return { one, two: gate.enter(request, one.spent, stack) }
      }
      const left = (user: string) => first.left(`tokens:${user}`, 'TOKENBUCKET', 100, 1, '1h')
      const asks = await entered('ann')
      await asks.one.end()
      await (await asks.two).end()
      const waits = await entered('bob')
      const two = await waits.two
      const turn = two.turn()
      await Promise.all([waits.one.end(), two.end()])
      assert.deepEqual([await turn, await left('ann'), await left('bob')], [false, 100 - (counted ?? 0), 100 - (counted ?? 0)])
    })
  }

  test('two gates share what the handler counts', async (t) => {
    const rule = (name: string): Rule<Asking> => ({ name, key: user, limit: new TokenBucket(100, 1, '1h'), estimate: 50 })
    const [first, second] = [made(t, [rule('in')]), made(t, [rule('out')])]
    const one = await first.gate.enter({ user: 'ann' }, undefined)
    const two = await second.gate.enter({ user: 'ann' }, one.spent)
    Object.assign(two.spent, { in: 10, out: 20 })
    await Promise.all([one.end(), two.end()])
    assert.equal(await first.left('in:ann', 'TOKENBUCKET', 100, 1, '1h'), 90)
    assert.equal(await second.left('out:ann', 'TOKENBUCKET', 100, 1, '1h'), 80)
  })

  test('a lease ends with its stream of HTTP/2, which may be reset while the rules are asked', async (t) => {
    let reset = () => {}
    const key = async ({ stream, url }: Http2ServerRequest) => {
      if (url === '/reset') {
        reset()
        await once(stream, 'close')
      }
      return 'ann'
    }
    const { gate, left: leftOf } = gateOn<Http2ServerRequest>(t, server.port, [{ name: 'streams', key, limit: new Concurrent(1, '1m') }])
    const goesOn: boolean[] = []
    const http = createServer(async (request, response) => {
      const pass = await gate.enter(request)
      goesOn.push(endWith(response, pass))
      if (goesOn.at(-1)) response.writeHead(pass.refusal?.status ?? 200, pass.headers).end()
    }).listen(0, '127.0.0.1')
    t.after(() => http.close())
    await once(http, 'listening')
    const client = connect(`http://127.0.0.1:${(http.address() as AddressInfo).port}`)
    t.after(() => client.destroy())
    const isLeft = async () => (await leftOf('streams:ann', 'CONCURRENT', 1, '1m', 'nobody')) === 1

    const answered = client.request({ ':path': '/' })
    const [headers] = await once(answered, 'response')
    answered.resume()
    assert.deepEqual([headers[':status'], headers['ratelimit']], [200, '"streams";r=0'])
    await until(isLeft, 'a release')
    const left = client.request({ ':path': '/reset' })
    reset = () => left.close(constants.NGHTTP2_CANCEL)
    await until(() => goesOn.length === 2, 'a decision')
    assert.deepEqual(goesOn, [true, false])
    await until(isLeft, 'a release after the reset')
  })
})

test('options of rules, shedders and gates are checked when they are made, and functions when they are called', async (t) => {
  const limiter = new RateLimiter(quiet(new Redis(1, { lazyConnect: true })))
  const rules = [{ name: 'a', key: user, limit: '1/s' }]
  const shed = { key: 'fleet', utilization: () => 0, tier: () => 1, tiers: 1 }
  const ruled = (rule: object) => ({ limiter, rules: [{ name: 'a', key: user, limit: '1/s', ...rule }] })
  const wrong: [object | undefined, RegExp][] = [
    [ruled({ key: 'ann' }), /rule 'a': key/],
    [ruled({ estimate: 5, hold: 60 }), /rule 'a': hold needs a unit: '60ms', '60s' or '60m'/],
    [ruled({ lmit: '1/s' }), /rule 'a': there is no option 'lmit'/],
    [ruled({ cost: '5' }), /rule 'a': cost/],
    [{ limiter, rules: ['1/s'] }, /a rule needs a name .*, not '1\/s'$/],
    [{ limiter, rules: [null] }, /a rule needs a name .*, not null$/],
    [undefined, /options are missing: { limiter: … }/],
    [{ limiter: {}, rules }, /limiter must be a RateLimiter, not an object$/],
    [{ limiter: 'redis://:secret@h', rules }, /limiter must be a RateLimiter, not a URL$/],
    [{ limiter, rules, shedd: shed }, /there is no option 'shedd'/],
    [{ limiter }, /rules must be a list, not undefined/],
    [{ limiter, rules: [], shed: { ...shed, tiers: 0 } }, /shed.tiers/],
    [{ limiter, rules: [], shed: { ...shed, tier: 1 } }, /shed.tier must be a function, not 1/],
    [{ limiter, rules: [], shed: { ...shed, bad: NaN } }, /shed.bad must be between 0 and 1, not NaN/],
    [{ limiter, rules: [], shed: { ...shed, delay: 28 } }, /shed.delay needs a unit: '28ms', '28s' or '28m'/],
    [{ limiter, rules: [], shed: { ...shed, gud: 0.5 } }, /there is no option 'shed.gud'/],
  ]
  for (const [options, message] of wrong) assert.throws(() => new Gate(options as never), { name: 'ConfigurationError', message })
  const returned: [object, RegExp][] = [
    [{ key: () => ({}) }, /rule 'a': key must return .*, not an object/],
    [{ limit: () => 5 }, /rule 'a': a limiter is needed/],
    [{ limit: () => 'fast' }, /rule 'a': 'fast'/],
    [{ cost: () => 1.5 }, /rule 'a': cost/],
    [{ cost: () => undefined }, /rule 'a': cost/],
    [{ estimate: () => undefined }, /rule 'a': estimate/],
  ]
  for (const [rule, message] of returned) {
    await assert.rejects(new Gate(ruled(rule) as never).enter({ user: 'ann' }), { name: 'ConfigurationError', message })
  }
  await limiter.close()
  const fails = (): never => {
    throw new Error('no gauge')
  }
  for (const [part, line] of [[{ utilization: () => NaN }, /not NaN/], [{ utilization: fails }, /no gauge/], [{ tier: fails }, /no gauge/]] as const) {
    const { gate, lines } = gateOn(t, 1, [], { shed: { ...shed, ...part }, fail: 'closed' })
    assert.equal((await gate.enter({})).refusal, undefined)
    assert.match(lines.join(), new RegExp(`RL.SHED at .*: nothing is shed: .*${line.source}`))
  }
})
