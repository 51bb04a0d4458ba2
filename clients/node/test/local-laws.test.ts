/**
 * Laws of local limits and of shares, on a simulated clock: however many processes, calls, deaths, late and lost replies there
 * are, what is spent stays below its bound in every window.
 *
 * RATELIMIT_HISTORIES is the number of histories, 300 by default.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Decision, Unavailable } from 'redis-ratelimit'
import type { SteadyRate } from '../dist/call/steady.js'
import { Counters } from '../dist/decide/counters.js'
import { Insurance, shareOf } from '../dist/decide/insurance.js'
import { Store } from '../dist/local/store.js'

const HISTORIES = Number(process.env['RATELIMIT_HISTORIES'] ?? 300)
const MISSING = new Unavailable('RL.GCRA', 'timeout', 'no reply', 'redis:6379', true)

/** The same numbers for the same seed: mulberry32, https://gist.github.com/tommyettinger/46a874533244883189143505d203312c. */
class Dice {
  constructor(private seed: number) {}

  next(): number {
    this.seed = (this.seed + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.seed ^ (this.seed >>> 15), this.seed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  one<T>(of: readonly T[]): T {
    return of[Math.floor(this.next() * of.length)]!
  }

  between(least: number, most: number): number {
    return least + this.next() * (most - least)
  }

  /** How long until something that happens each `mean` ms. */
  until(mean: number): number {
    return -Math.log(1 - this.next()) * mean
  }
}

/** What happens next, earliest first. */
class Events {
  /** The latest first. Of equal times the one that was added first is the last. */
  readonly #coming: { at: number; work: (now: number) => void }[] = []

  add(at: number, work: (now: number) => void): void {
    let [from, to] = [0, this.#coming.length]
    while (from < to) {
      const middle = (from + to) >> 1
      if (this.#coming[middle]!.at > at) from = middle + 1
      else to = middle
    }
    this.#coming.splice(from, 0, { at, work })
  }

  run(until: number): void {
    for (let next = this.#coming.pop(); next !== undefined && next.at <= until; next = this.#coming.pop()) next.work(next.at)
  }
}

/** The server: an exact bucket of C tokens that fills at r. */
class Bucket {
  #left: number
  #at = 0

  constructor(private readonly rate: SteadyRate) {
    this.#left = rate.most
  }

  granted(cost: number, now: number, isPartial: boolean): Decision {
    const { most, count, period } = this.rate
    this.#left = Math.min(most, this.#left + ((now - this.#at) * count) / period)
    this.#at = now
    const there = Math.floor(this.#left + 1e-9)
    const granted = isPartial ? Math.min(cost, there) : cost <= there ? cost : 0
    this.#left -= granted
    return new Decision([granted > 0 ? 0 : 1, most, Math.floor(this.#left), granted > 0 ? 0 : Math.ceil(period / count), 0, granted])
  }
}

interface Admitted {
  at: number
  cost: number
}

interface World {
  count: number
  hold: number
  rate: SteadyRate
  /** The mean time of one way, in ms. */
  latency: number
  lost: number
  late: number
  deaths: number
  outage: readonly [from: number, to: number]
  /** The mean time between two calls of a process. */
  gap: number
  costs: readonly number[]
  life: number
  warm: number
  /** How often the middleware gives back what it took. */
  returns: number
}

/** A process: its store, its share, and a clock with a start of its own. */
interface Process {
  store: Store
  share: Insurance
  insured: Admitted[]
  start: number
  /** The costs of the calls that wait, and for how many fetches they have waited. */
  waiting: (readonly [cost: number, waits: number])[]
  isAlive: boolean
}

/** Some seconds of some processes, and every call that was admitted. */
class History {
  readonly server: Bucket
  readonly spent: Admitted[] = []
  readonly all: Process[] = []
  readonly #events = new Events()
  /** From `warm` on: how many calls there were, and how many were sent. */
  asked = 0
  sent = 0

  constructor(readonly world: World, private readonly dice: Dice) {
    this.server = new Bucket(world.rate)
    for (let n = 0; n < world.count; n += 1) this.#begin(0)
    this.#events.run(world.life)
  }

  #begin(now: number): void {
    const { rate, hold, count, gap } = this.world
    const store = new Store(rate, hold, count, new Counters())
    const one = { store, share: new Insurance(), insured: [], start: this.dice.between(0, 1e9), waiting: [], isAlive: true }
    this.all.push(one)
    this.#events.add(now + this.dice.until(gap), (at) => this.#call(at, one))
  }

  #call(now: number, one: Process): void {
    const { deaths, gap, costs } = this.world
    if (deaths > 0 && this.dice.next() < deaths) {
      one.isAlive = false
      this.#begin(now)
      return
    }
    this.#events.add(now + this.dice.until(gap), (at) => this.#call(at, one))
    if (now >= this.world.warm) this.asked += 1
    this.#take(now, one, this.dice.one(costs), 0)
  }

  #take(now: number, one: Process, cost: number, waits: number): void {
    const { store } = one
    const clock = one.start + now
    // Some ask without waiting first, as the middleware of an application may.
    const tried = waits > 0 || this.dice.next() < 0.7 ? 'ask' : store.tryTake(cost, clock)
    const answer = tried === 'ask' ? store.take(cost, clock, waits) : tried
    if (typeof answer === 'object') {
      if (answer.allowed && this.dice.next() < this.world.returns) store.giveBack(cost, answer, clock)
      else if (answer.allowed) this.spent.push({ at: now, cost })
    }
    if (store.wanted > 0) {
      this.#send(now, one, store.wanted, true)
      store.wanted = 0
    }
    if (answer === 'ask') this.#send(now, one, cost, false)
    else if (answer === 'wait') one.waiting.push([cost, waits + 1])
    else if (answer === 'share') this.#insured(now, one, cost)
  }

  #insured(now: number, one: Process, cost: number): void {
    const { rate, count } = this.world
    const [limited] = one.share.take([{ place: 'a', rate, processes: count, cost }], one.start + now, true)
    if (limited === 0) one.insured.push({ at: now, cost })
  }

  #send(now: number, one: Process, cost: number, isFetch: boolean): void {
    if (now >= this.world.warm) this.sent += 1
    this.#events.add(now + this.#trip(), (at) => this.#serve(at, one, cost, now, isFetch))
  }

  #serve(now: number, one: Process, cost: number, sent: number, isFetch: boolean): void {
    const { lost, outage } = this.world
    let outcome: Decision | undefined
    if (this.dice.next() >= lost && !(now >= outage[0] && now <= outage[1])) {
      outcome = this.server.granted(cost, now, isFetch)
      // Whether or not the reply arrives.
      if (!isFetch && outcome.allowed) this.spent.push({ at: now, cost })
      if (this.dice.next() < lost) outcome = undefined
    }
    this.#events.add(now + this.#trip(), (at) => this.#arrive(at, one, cost, sent, isFetch, outcome))
  }

  #arrive(now: number, one: Process, cost: number, sent: number, isFetch: boolean, outcome: Decision | undefined): void {
    const { store, start } = one
    if (!one.isAlive) return
    if (!isFetch) {
      store.asked(outcome ?? MISSING, start + now)
      return outcome === undefined ? this.#insured(now, one, cost) : undefined
    }
    if (outcome === undefined) store.ended(MISSING)
    else store.fetched(outcome, cost, start + sent, start + now)
    for (const [each, waits] of one.waiting.splice(0)) this.#take(now, one, each, waits)
  }

  #trip(): number {
    const { latency, late } = this.world
    return this.dice.until(latency) * (this.dice.next() < late ? 100 : 1)
  }
}

function random(dice: Dice): World {
  const count = dice.one([1, 2, 3, 5, 10, 20, 50])
  const hold = dice.one([5, 20, 100, 400])
  const perSecond = dice.one([200, 1000, 10_000])
  const most = Math.max(1, Math.floor((perSecond * hold) / 1000)) * dice.one([1, 1, 2, 10]) + Math.floor(dice.between(0, 3))
  const gap = dice.one([0.02, 0.1, 0.5]) * hold * dice.between(0.5, 2)
  const life = (dice.one([100, 300, 1000]) * gap) / count
  const [from, to] = [dice.between(0, life), dice.between(0, life)]
  return {
    count,
    hold,
    rate: { most, count: perSecond, period: 1000 },
    latency: dice.one([0.2, 1, 10, hold]),
    lost: dice.one([0, 0, 0.01, 0.3]),
    late: dice.one([0, 0, 0.01, 0.3]),
    deaths: dice.one([0, 0, 0.0001, 0.003]),
    outage: dice.next() < 0.3 ? [Math.min(from, to), Math.max(from, to)] : [Infinity, Infinity],
    gap,
    costs: dice.one([[1], [1], [1, 1, 1, 5], [1, 20, 100]]),
    life,
    warm: 0,
    returns: dice.one([0, 0, 0.1]),
  }
}

/** What was spent in a window, beside the most that may be. */
interface Window {
  spent: number
  bound: number
  ms: number
  /** Which part of what may be spent at once was spent beyond the rate. */
  part: number
}

const NONE: Window = { spent: 0, bound: 0, ms: 0, part: 0 }
const tighter = (one: Window, other: Window) => (other.part > one.part ? other : one)

/**
 * The tightest window. No window may have more than `most + perMs * ms`.
 *
 * It is one pass, as of a leaky bucket: its level is the most that any window which ends now has beyond the rate.
 */
function tightest(admitted: readonly Admitted[], most: number, perMs: number): Window {
  let best = NONE
  let [begin, level, spent, last] = [0, 0, 0, 0]
  for (const { at, cost } of admitted.toSorted((one, other) => one.at - other.at)) {
    level -= (at - last) * perMs
    if (level <= 0) [begin, level, spent] = [at, 0, 0]
    ;[level, last, spent] = [level + cost, at, spent + cost]
    const window = { spent, bound: most + perMs * (at - begin), ms: at - begin, part: level / most }
    assert.ok(level <= most + 1e-6, `too much: ${JSON.stringify(window)}`)
    best = tighter(best, window)
  }
  return best
}

const shown = ({ spent, bound, ms }: Window) => `${spent} in ${ms.toFixed(1)} ms; the bound is ${bound.toFixed(1)}`
const LARGE = 500

test('what all processes spend, and what a share admits, stays below its bound', (context) => {
  let [best, large, share] = [NONE, NONE, NONE]
  for (let seed = 1; seed <= HISTORIES; seed += 1) {
    const dice = new Dice(seed)
    const { world, spent, all } = new History(random(dice), dice)
    const { rate, hold, count } = world
    const perMs = rate.count / rate.period
    try {
      const window = tightest(spent, rate.most + perMs * hold, perMs)
      best = tighter(best, window)
      if (rate.most >= LARGE) large = tighter(large, window)
      for (const { insured } of all) share = tighter(share, tightest(insured, shareOf(rate, count), perMs / count))
    } catch (error) {
      throw new Error(`seed ${seed}, ${JSON.stringify(world)}`, { cause: error })
    }
  }
  context.diagnostic(`${HISTORIES} histories. The tightest windows, of`)
  context.diagnostic(`  all processes: ${shown(best)}`)
  context.diagnostic(`  all processes, limits of at least ${LARGE}: ${shown(large)}`)
  context.diagnostic(`  a share: ${shown(share)}`)
  assert.ok(best.part > 0.6 && share.part > 0.99, 'the histories do not come near their bounds')
})

test('the bound of all processes can be reached', () => {
  // 20 processes take the whole limit, spend it just before it is forgotten, and then what came in meanwhile.
  const [rate, late] = [{ most: 10_000, count: 10_000, period: 1000 }, 99]
  const server = new Bucket(rate)
  const stores = Array.from({ length: 20 }, () => new Store(rate, 100, 20, new Counters()))
  const fetch = (store: Store, now: number) => {
    if (store.wanted > 0) store.fetched(server.granted(store.wanted, now, true), store.wanted, now, now)
  }
  for (const store of stores) {
    // A demand of which 100 ms are more than its part of the limit.
    store.take(7000, 0, 0)
    assert.equal(store.take(1, 0, 0), 'wait')
    fetch(store, 0)
  }
  let spent = 0
  for (const store of stores) {
    for (let answer = store.take(1, late, 0); typeof answer === 'object' && answer.allowed; answer = store.take(1, late, 0)) {
      spent += 1
      fetch(store, late)
    }
  }
  assert.equal(spent, rate.most + (rate.count / rate.period) * late)
})

for (const [demand, throughput, ratio] of [[9500, 0.99, 20], [10_000, 0.97, 20], [12_000, 0.99, 20]] as const) {
  test(`20 processes of ${demand}/s in all, on 10000/s`, (context) => {
    // After ten seconds what could be taken at once is spent.
    const [count, life, warm] = [20, 20_000, 10_000]
    const rate = { most: 10_000, count: 10_000, period: 1000 }
    const world = { count, hold: 100, rate, latency: 0.3, lost: 0, late: 0, deaths: 0, outage: [Infinity, Infinity], gap: (count * 1000) / demand, costs: [1], life, warm, returns: 0 } as const
    const { spent, asked, sent } = new History(world, new Dice(demand))
    const seconds = (life - warm) / 1000
    const perSecond = spent.filter(({ at }) => at >= warm).reduce((sum, { cost }) => sum + cost, 0) / seconds
    const possible = Math.min(demand, 10_000)
    context.diagnostic(`${demand}/s: ${((100 * perSecond) / possible).toFixed(2)} % of ${possible}/s, ${(asked / sent).toFixed(1)} calls answered for each that is sent`)
    assert.ok(perSecond >= throughput * possible, `${perSecond} a second`)
    assert.ok(asked / sent >= ratio, `${asked / sent} calls for each that is sent`)
  })
}
