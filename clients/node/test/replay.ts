/** Replays the cases of clients/contract/cases: what a package does, step by step, over a wire, a clock and ids of its own. */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import * as all from 'redis-ratelimit'
import { RateLimiter, UNLIMITED, type LimiterLike, type LimitLike, type RateLimiterOptions } from 'redis-ratelimit'
import { Gate, Stack, type Passage, type Rule, type Shed } from 'redis-ratelimit/gate'
import type { Call } from '../dist/call/call.js'
import { limiterOf } from '../dist/call/rate.js'
import type { Runtime } from '../dist/runtime.js'
import { NoReply } from '../dist/decide/failure.js'
import type { Line, OwnClient } from '../dist/wire/own.js'
import { slotOf } from '../dist/wire/slots.js'

type Fields = Record<string, unknown>

interface Outcome {
  reply?: unknown
  error?: string
  lost?: 'timeout' | 'connection'
  unsent?: 'connection' | 'crowded'
  pending?: string
}

interface Sent extends Outcome {
  words: string | string[]
  at?: string
  times?: number
}

interface Step {
  after?: string
  call?: string
  with?: Fields
  as?: string
  answer?: string
  outcome?: Outcome
  sends?: Sent[]
  gives?: unknown
  throws?: Fields
  of?: string
  log?: string[]
  told?: string[]
  counters?: Record<string, number>
  times?: number
}

export interface Case {
  name: string
  limiter?: Fields
  nodes?: number
  gate?: Fields
  steps: Step[]
}

const TIMEOUT = 100

interface Form {
  name: string
  arguments: { name: string; optional?: boolean }[]
}

const { commands } = JSON.parse(readFileSync('../contract/catalog.json', 'utf8')) as { commands: { forms: Form[] }[] }
const FORMS = new Map(commands.flatMap(({ forms }) => forms).map((form) => [form.name, form]))

/** A clock that stands still until it is moved, its timers, and ids that are counted. */
class Clock implements Runtime {
  #now = 0
  #ids = 0
  #number = 0
  readonly #timers = new Map<number, { at: number; work: () => void }>()

  now = () => this.#now
  unix = () => 1_700_000_000_000 + this.#now
  id = () => `id${(this.#ids += 1)}`
  random = () => 0
  soon = (work: () => void) => void setImmediate(work)
  later = (ms: number, work: () => void) => this.after(ms, work)

  after(ms: number, work: () => void): () => void {
    const number = (this.#number += 1)
    this.#timers.set(number, { at: this.#now + ms, work })
    return () => void this.#timers.delete(number)
  }

  async move(ms: number): Promise<void> {
    const end = this.#now + ms
    for (;;) {
      const due = [...this.#timers].filter(([, { at }]) => at <= end).sort(([a, one], [b, other]) => one.at - other.at || a - b)[0]
      if (due === undefined) break
      const [number, { at, work }] = due
      this.#timers.delete(number)
      this.#now = Math.max(this.#now, at)
      work()
      await settled()
    }
    this.#now = end
  }
}

/** Until nothing more happens without the clock. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 4; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

/** A server, or a cluster of equal nodes, that replies what a step says. */
class Wire implements OwnClient {
  readonly ready = Promise.resolve()
  readonly lastError = undefined
  readonly sendsLater = false
  readonly keyPrefix = ''
  readonly name = 'redis:6379'
  readonly isCluster: boolean
  readonly owners: readonly string[]
  expected: Sent[] = []
  readonly wrong: string[] = []
  readonly pending = new Map<string, (outcome: Outcome) => void>()
  readonly #chosen = new Map<string, string>()

  constructor(readonly nodes: number) {
    this.isCluster = nodes > 0
    this.owners = Array.from({ length: nodes }, (_, i) => `node${i + 1}:6379`)
  }

  get moves(): boolean {
    return this.primaries > 1
  }

  get primaries(): number {
    return Math.max(1, this.nodes)
  }

  owner(key: string): string | undefined {
    return this.isCluster ? this.owners[Math.floor((slotOf(key) * this.nodes) / 16384)] : undefined
  }

  async line(): Promise<Line> {
    return { send: (call) => this.send(call), close: () => undefined }
  }

  again(): undefined {}

  drop(): boolean {
    return false
  }

  close(): void {}

  async send(call: Call): Promise<unknown> {
    const next = this.expected[0]
    const node = this.owner(call.keys[0] ?? '')
    if (next === undefined || !this.#matches(next, call.words) || (next.at !== undefined && next.at !== node)) {
      this.wrong.push(`${call.words.join(' ')}${node === undefined ? '' : ` at ${node}`}`)
      return new Promise(() => undefined)
    }
    if (next.times === undefined || next.times <= 1) this.expected.shift()
    else this.expected[0] = { ...next, times: next.times - 1 }
    const outcome = next.pending === undefined ? next : await new Promise<Outcome>((resolve) => this.pending.set(next.pending!, resolve))
    return replied(outcome)
  }

  // A word in angle brackets stands for what the package chose.
  #matches({ words }: Sent, sent: readonly string[]): boolean {
    const list = typeof words === 'string' ? words.split(' ') : words
    if (list.length !== sent.length) return false
    const chosen = new Map(this.#chosen)
    for (const [i, word] of list.entries()) {
      const names = [...word.matchAll(/<(\w+)>/g)].map(([, name]) => name!)
      const pattern = new RegExp(`^${word.split(/<\w+>/).map(escaped).join('([A-Za-z0-9:-]+)')}$`)
      const found = pattern.exec(sent[i]!)
      if (found === null) return false
      for (const [j, name] of names.entries()) {
        if ((chosen.get(name) ?? found[j + 1]) !== found[j + 1]) return false
        chosen.set(name, found[j + 1]!)
      }
    }
    for (const [name, id] of chosen) this.#chosen.set(name, id)
    return true
  }
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}

function replied({ reply, error, lost, unsent }: Outcome): unknown {
  if (error !== undefined) throw Object.assign(new Error(error), { name: 'ReplyError' })
  if (lost === 'timeout') throw new NoReply('timeout', `no reply within ${TIMEOUT} ms`, true)
  if (lost === 'connection') throw new NoReply('connection', 'the connection was lost', true)
  if (unsent === 'connection') throw new NoReply('connection', 'no connection', false)
  if (unsent === 'crowded') throw new NoReply('crowded', 'too many calls at once', false)
  return reply
}

const camel = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
const named = (fields: Fields, name: (name: string) => string) => Object.fromEntries(Object.entries(fields).map(([key, value]) => [name(key), value]))

/** The options of a limiter, as Node.js calls them. */
function optionsOf(given: Fields = {}): RateLimiterOptions {
  const inner = (value: unknown) => (typeof value === 'object' && value !== null ? named(value as Fields, camel) : value)
  const { hooks: _hooks, ...others } = given
  const options = Object.fromEntries(Object.entries(others).map(([key, value]) => [camel(key), inner(value)])) as RateLimiterOptions
  return typeof options.fail === 'object' ? { ...options, fail: new all.Share(options.fail) } : options
}

/** A rate, a limiter or a limit. What a case gives for none goes through as it is. */
function limitOf(given: unknown): LimitLike {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return given as LimiterLike
  const { limit, rate, burst, name, ...others } = given as Fields
  if (rate !== undefined) return new all.Rate(rate as string, { burst: burst as number })
  if (limit !== undefined && name === undefined) return new all.Limit(limitOf(limit) as LimiterLike, others)
  const parts: Fields = named({ ...others, ...(limit === undefined ? {} : { limit }), ...(burst === undefined ? {} : { burst }) }, camel)
  const [, made] = Object.entries(all).find(([key]) => key.toUpperCase() === name)!
  const [, required = ''] = /constructor\(([^)]*)\)/.exec(String(made)) ?? []
  const positional = required.split(', ').filter((one) => one !== '' && !one.startsWith('parameters'))
  const first = positional.map((one) => parts[one])
  for (const one of positional) delete parts[one]
  return new (made as unknown as new (...args: unknown[]) => LimiterLike & object)(...first, parts)
}

/** A value of a rule, or a function of the request that returns one of its fields. */
function perRequest(value: unknown, translate: (value: unknown) => unknown = (one) => one): unknown {
  if (typeof value !== 'object' || value === null || !('from' in value)) return translate(value)
  return (request: Fields) => {
    const field = request[value.from as string]
    return typeof field === 'object' && field !== null && 'unlimited' in field ? UNLIMITED : translate(field)
  }
}

function countsOf(counts: unknown): unknown {
  return Array.isArray(counts) ? (status: number) => counts.includes(status) : counts === 'broken' ? broken : counts
}

function ruleOf({ limit, ...others }: Fields): Rule<Fields> {
  const rule = Object.fromEntries(Object.entries(others).map(([name, value]) => [name, name === 'counts' ? countsOf(value) : perRequest(value)]))
  return (limit === undefined ? rule : { ...rule, limit: perRequest(limit, limitOf) }) as unknown as Rule<Fields>
}

function shedOf(given: Fields, request: () => Fields): Shed<Fields> {
  const shed = Object.fromEntries(Object.entries(given).map(([name, value]) => [camel(name), perRequest(value)]))
  const { utilization } = shed
  const ofRequest = typeof utilization === 'function' ? () => (utilization as (request: Fields) => unknown)(request()) : () => utilization
  return { ...shed, utilization: ofRequest, tier: typeof shed['tier'] === 'function' ? shed['tier'] : () => shed['tier'] } as unknown as Shed<Fields>
}

/** What came of a call. */
interface Came {
  value?: unknown
  error?: unknown
  isOver: boolean
}

class Overload extends Error {}
class Trouble extends Error {}

const broken = () => {
  throw new TypeError('it is broken')
}

const WORK: Record<string, new () => Error> = { Overload, Trouble }
const DROPS: Record<string, unknown> = {
  class: Overload,
  classes: [Overload],
  function: (error: unknown) => error instanceof Overload,
  broken,
  asynchronous: async () => true,
  numbers: [1],
}

/** One case. */
class Replay {
  readonly #clock = new Clock()
  readonly #wire: Wire
  readonly #lines: string[] = []
  readonly #told: string[] = []
  readonly #came = new Map<string, Came>()
  readonly #controls = new Map<string, AbortController>()
  readonly #limiter: RateLimiter
  readonly #gate: Gate<Fields> | undefined
  readonly #stacks = new Map<string, Stack>()
  #request: Fields = {}

  constructor({ limiter, nodes = 0, gate }: Case) {
    this.#wire = new Wire(nodes)
    this.#limiter = this.#made(limiter)
    this.#gate = gate === undefined ? undefined : this.#gateOf(gate)
  }

  async run(step: Step): Promise<void> {
    this.#wire.expected = [...(step.sends ?? [])]
    this.#lines.length = this.#told.length = 0
    if (step.after !== undefined) {
      await this.#clock.move(milliseconds(step.after))
      await this.#clock.move(0)
    }
    let came: Came | undefined = step.of === undefined ? undefined : this.#came.get(step.of)
    if (step.call !== undefined) {
      came = this.#begin(step.call, step.with ?? {}, step.as)
      if (step.as !== undefined) this.#came.set(step.as, came)
    }
    if (step.answer !== undefined) this.#wire.pending.get(step.answer)!(step.outcome!)
    await settled()
    await this.#clock.move(0)
    assert.deepEqual(this.#wire.wrong, [], 'calls that the case does not allow')
    assert.deepEqual(this.#wire.expected.map(({ words }) => words), [], 'calls that were not sent')
    if (step.throws !== undefined) thrown(came!, step.throws)
    else if ('gives' in step) given(came!, step.gives)
    else if (step.call !== undefined && came!.isOver && came!.error !== undefined && step.as === undefined) throw came!.error
    if (step.log !== undefined) assert.deepEqual(this.#lines, step.log, 'the log')
    if (step.told !== undefined) assert.deepEqual(this.#told, step.told, 'what hooks are told')
    const counters: Fields = { ...this.#limiter.counters }
    for (const [name, value] of Object.entries(step.counters ?? {})) assert.equal(counters[camel(name)], value, name)
  }

  #made(options?: Fields): RateLimiter {
    const logger = (line: string) => this.#lines.push(line.replace(/^redis-ratelimit: /, ''))
    // The wire says when a call is too late, and not the clock.
    const timeouts = { timeoutMs: 1e12, connectTimeoutMs: 1e12 }
    const hooks = options?.['hooks'] === undefined ? {} : options['hooks'] === 'broken' ? BROKEN : this.#hooks()
    return new RateLimiter(undefined as never, { ...timeouts, ...optionsOf(options), ...hooks, logger }, { runtime: this.#clock, connect: () => this.#wire })
  }

  #hooks(): all.Hooks {
    return {
      onDecision: ({ allowed }, { command, key, ms }) => void this.#told.push(`${command} ${key}: ${allowed ? 'allowed' : 'refused'} after ${Math.round(ms)} ms`),
      onError: ({ name, command }) => void this.#told.push(`${name} of ${command}`),
    }
  }

  #gateOf({ rules = [], shed, ...others }: Fields): Gate<Fields> {
    const given = Object.fromEntries(Object.entries(others).map(([name, value]) => [name, perRequest(value)]))
    const options = { limiter: this.#limiter, rules: (rules as Fields[]).map(ruleOf), ...given }
    return new Gate(shed === undefined ? options : { ...options, shed: shedOf(shed as Fields, () => this.#request) })
  }

  #begin(call: string, given: Fields, as: string | undefined): Came {
    const came: Came = { isOver: false }
    const control = new AbortController()
    if (as !== undefined) this.#controls.set(as, control)
    const done = (part: Partial<Came>) => void Object.assign(came, part, { isOver: true })
    Promise.resolve()
      .then(() => this.#call(call, given, control.signal, as))
      .then((value) => done({ value }), (error: unknown) => done({ error }))
    return came
  }

  #work({ key, error, drops, ...options }: Fields): Promise<unknown> {
    const told = { ...options, ...(drops === undefined ? {} : { drops: DROPS[drops as string] }) } as never as all.LeaseOptions
    return this.#limiter.lease(key as string, told, () => {
      throw new WORK[error as string]!()
    })
  }

  #command(name: string, given: Fields): unknown {
    const { limiter, limits, ...others } = given
    const made = { ...others, ...(limiter ? { limiter: limitOf(limiter) } : {}), ...(limits ? { limits: (limits as unknown[]).map(limitOf) } : {}) } as Fields
    const told = FORMS.get(name)!.arguments.map(({ name, optional = false }) => ({ name, optional, value: made[name] }))
    const options = told.filter(({ optional, value }) => optional && value !== undefined).map(({ name, value }) => [camel(name), value])
    const method = (this.#limiter.commands as unknown as Record<string, (...values: unknown[]) => unknown>)[camel(name)]!
    return method.call(this.#limiter.commands, ...told.filter(({ optional }) => !optional).map(({ value }) => value), ...(options.length > 0 ? [Object.fromEntries(options)] : []))
  }

  #call(call: string, given: Fields, signal: AbortSignal, as?: string): unknown {
    const limiter = this.#limiter
    const { key, keys, limit, limits, policy, id, cost, of, ...others } = given
    const options = { ...named(others, camel), ...(cost === undefined ? {} : { cost: cost as number }), ...(SIGNALS.has(call) ? { signal } : {}) } as never
    const withKeys = { ...(options as object), ...(keys === undefined ? {} : { keys }) } as never
    const earlier = this.#came.get(of as string)?.value
    const calls: Record<string, () => unknown> = {
      new: () => void this.#made(given),
      value: () => wordsOf(limitOf(limit)),
      address: () => all.clientAddress(given['text'] as string, 'v6' in given ? { v6: given['v6'] as number } : {}),
      command: () => this.#command(given['name'] as string, given['arguments'] as Fields),
      limit: () => limiter.limit(key as string, limitOf(limit) as LimiterLike, options),
      limits: () => limiter.limits(keys as string[], (limits as unknown[]).map(limitOf), options),
      ask: () => limiter.ask(key as string, policy as string, withKeys),
      peek: () => limiter.peek(key as string, (policy ?? limitOf(limit)) as LimiterLike, withKeys),
      explain: () => limiter.explain(key as string, (policy ?? limitOf(limit)) as LimiterLike, withKeys),
      refund: () => limiter.refund(key as string, limitOf(limit) as LimiterLike, options),
      local: () => limiter.local(key as string, limitOf(limit) as LimiterLike, options),
      take: () => (earlier as all.Local).take(cost as number | undefined),
      try_take: () => (earlier as all.Local).tryTake(cost as number | undefined),
      reset: () => limiter.reset(key as string),
      release: () => limiter.release(keys as string[], id as string, options),
      settle: () => limiter.settle(keys as string[], (limits as unknown[]).map(limitOf), id as string, options),
      settle_ask: () => {
        const { cost: _cost, ...rest } = withKeys as Fields
        return limiter.settleAsk(key as string, policy as string, id as string, cost as number, rest as never)
      },
      ready: () => limiter.ready({ ...(options as object), ...(limits === undefined ? {} : { limits: (limits as unknown[]).map(limitOf) }) }),
      close: () => limiter.close(),
      lease: () => limiter.lease(key as string, options),
      renew: () => (earlier as all.Lease).renew(),
      release_lease: () => (earlier as all.Lease).release(given['outcome'] as all.Outcome),
      look: () => earlier,
      hold: () => {
        const { estimate, ttl, key: _key, limit: _limit, policy: _policy, keys: _keys, ...told } = given as Fields & { estimate: number }
        const budget = limiter.budget(key as string, (policy ?? limitOf(limit)) as LimiterLike, { ...(ttl ? { ttl } : {}), ...(keys ? { keys } : {}) } as never)
        return budget.hold(estimate, { signal, ...told } as never)
      },
      crosses: () => (earlier as all.Decision).crosses(given['fraction'] as number),
      record: () => (earlier as all.Hold).settle(cost as number),
      end: () => (earlier as all.Hold).end(),
      cancel: () => (earlier as all.Hold).cancel(),
      cancel_call: () => this.#controls.get(of as string)!.abort(),
      rules: () => void this.#gateOf(given),
      work: () => this.#work(given),
      enter: () => {
        const stack = this.#stacks.get(of as string) ?? new Stack()
        if (as !== undefined) this.#stacks.set(as, stack)
        this.#request = given['request'] as Fields
        return this.#gate!.enter(this.#request, undefined, stack, { websocket: given['websocket'] as boolean | undefined })
      },
      leave: () => {
        const passage = earlier as Passage
        Object.assign(passage.spent, given['spent'])
        return passage.end(given['status'] as number | undefined)
      },
    }
    const begin = calls[call]
    if (begin === undefined) throw new Error(`unknown call ${call}`)
    return begin()
  }
}

const BROKEN = { onDecision: broken, onError: broken }
const SIGNALS = new Set(['limit', 'limits', 'ask', 'peek', 'lease'])

function wordsOf(like: LimitLike): { words: string } {
  if (like instanceof all.Limit) return { words: like.clause.slice(1).join(' ') }
  const limiter = limiterOf(like as LimiterLike)
  return { words: [limiter.name, ...limiter.words].join(' ') }
}

const UNITS: Record<string, number> = { ms: 1, s: 1e3, m: 6e4, h: 36e5, d: 864e5 }

function milliseconds(text: string): number {
  const [, count, unit = ''] = /^(\d+)(\w+)$/.exec(text)!
  return Number(count) * UNITS[unit]!
}

function given(came: Came, expected: unknown): void {
  if (came.error !== undefined) throw came.error
  assert.ok(came.isOver, 'the call is not over')
  const { value } = came
  if (typeof expected !== 'object' || expected === null) assert.equal(value ?? null, expected)
  else if ('value' in expected) assert.deepEqual(value, expected.value)
  else same(value, expected as Fields)
}

/** Compares the fields that are named. */
function same(value: unknown, expected: Fields): void {
  for (const [name, one] of Object.entries(expected)) {
    const found = field(value as Fields, name)
    if (name === 'error' && one !== null) thrown({ error: found, isOver: true }, { error: 'Unavailable', ...(one as Fields) })
    else if (name === 'each' && Array.isArray(one)) {
      assert.equal((found as unknown[]).length, one.length)
      for (const [i, each] of one.entries()) same((found as unknown[])[i], each as Fields)
    } else if (name === 'decisions') {
      assert.deepEqual(Object.keys(found as Fields), Object.keys(one as Fields), name)
      for (const [rule, decision] of Object.entries(one as Fields)) same((found as Fields)[rule], decision as Fields)
    } else if (name === 'decision') same(found, one as Fields)
    else assert.deepEqual(found ?? null, one, name)
  }
}

function field(value: Fields, name: string): unknown {
  if (name === 'headers' && value instanceof all.Decision) return value.headers('user')
  const { refusal } = value as unknown as Passage
  if (name === 'status') return refusal?.status ?? 200
  if (name === 'body') return JSON.parse(refusal!.body)
  if (name === 'violated' || (refusal && name === 'retry_after_ms')) return refusal?.[name === 'violated' ? name : 'retryAfter']
  return value[camel(name.replace(/_ms$/, ''))]
}

function thrown({ error, isOver }: Came, expected: Fields): void {
  assert.ok(isOver && error !== undefined, `no error, but ${JSON.stringify(expected)}`)
  const { error: kind, text, says, decision, ...others } = expected
  const found = error as Error & Fields
  const made = WORK[kind as string] ?? (all as unknown as Record<string, new () => unknown>)[kind as string]!
  assert.ok(found instanceof made, `${found.stack} is no ${String(kind)}`)
  if (text !== undefined) assert.equal(found.message, text)
  if (says !== undefined) assert.ok(found.message.toLowerCase().includes((says as string).replace('_', '').toLowerCase()), `'${found.message}' does not say '${String(says)}'`)
  if (decision !== undefined) same(found['decision'], decision as Fields)
  for (const [name, value] of Object.entries(others)) assert.equal(found[snake(name) === name ? camel(name) : name], value, name)
}

/** Replays a case. */
export async function replay(given: Case): Promise<void> {
  const one = new Replay(given)
  for (const [number, step] of given.steps.entries()) {
    for (let time = 0; time < (step.times ?? 1); time += 1) {
      try {
        await one.run(step)
      } catch (error) {
        throw new Error(`step ${number + 1}: ${(error as Error).message}`, { cause: error })
      }
    }
  }
}
