/** What a user with few rights is to do, for each row of the table in docs/clients.md. */

import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { Concurrent, Limit, TokenBucket, type RateLimiter } from 'redis-ratelimit'
import { Gate, type Rule } from 'redis-ratelimit/gate'
import { until, type Server } from './servers.js'

type Row = (limiter: RateLimiter, server: Server) => Promise<unknown>

const BUCKET = new TokenBucket(1000, 1000, '1d')
const ONE = new Concurrent(1, '1s')
const ann = () => 'ann'

/** The rights of the rows. */
export function table(): Map<string, string[]> {
  const page = readFileSync(resolve('../../docs/clients.md'), 'utf8')
  const section = page.split('\n### Rights\n')[1]!.split('\n### ')[0]!
  const rows = [...section.matchAll(/^\| ([^|]+) \| `(\+rl\.[^|`]+)` \|$/gm)]
  return new Map(rows.map(([, what, rights]) => [what!.replaceAll('`', ''), rights!.split(' ')]))
}

/** The commands of limiters that the server denied since the last reset. */
export async function denied(server: Server): Promise<string[]> {
  const statistics = await server.cli('INFO', 'commandstats')
  return [...statistics.matchAll(/^cmdstat_(rl\.\w+|unlink):.*rejected_calls=[1-9]/gm)].map(([, name]) => name!)
}

export async function setPolicies(server: Server): Promise<void> {
  await server.cli('RL.POLICY', 'SET', 'api', 'LIMIT', 'GCRA', '99', '100', '1m')
  await server.cli('RL.POLICY', 'SET', 'none', 'LIMIT', 'GCRA', '0', '1', '1d')
  await server.cli('RL.POLICY', 'SET', 'jobs', 'LIMIT', 'CONCURRENT', '1', '1m')
}

function untilRenewed(server: Server): Promise<void> {
  return until(async () => /^cmdstat_rl\.renew:/m.test(await server.cli('INFO', 'commandstats')), 'a renewal')
}

const budget = (of: TokenBucket | string): Row => (limiter) => limiter.budget('tokens', of).hold(60, (hold) => hold.settle(45))

async function heldLimits(limiter: RateLimiter): Promise<void> {
  await limiter.limits(['key'], [BUCKET], { cost: 60, hold: { id: 'id', ttl: '1m' } })
  await limiter.settle(['key'], [BUCKET], 'id', { cost: 45, within: '1m' })
}

interface Also {
  shed?: boolean
  lease?: boolean
}

function middleware(rules: Rule<object>[], { shed = false, lease = false }: Also = {}): Row {
  const shedder = shed ? { key: 'fleet', utilization: () => 0.5, tier: () => 1, tiers: 3 } : undefined
  return async (limiter, server) => {
    const gate = new Gate<object>({ limiter, rules, shed: shedder })
    await limiter.ready()
    const pass = await gate.enter({})
    if (lease) await untilRenewed(server)
    await pass.end()
  }
}

/** The last rule admits one request, and the others give back the second. */
function middlewareRefuses(rules: Rule<object>[]): Row {
  return async (limiter) => {
    const gate = new Gate<object>({ limiter, rules })
    await limiter.ready()
    await (await gate.enter({})).end()
    await gate.enter({})
  }
}

const minute: Rule<object> = { name: 'default', key: ann, limit: '3/h' }
const none: Rule<object> = { name: 'none', key: ann, policy: 'none' }
const lease = (name: string): Rule<object> => ({ name, key: ann, limit: ONE })
const policy = (policy: string | (() => string)): Rule<object> => ({ name: 'policy', key: ann, policy })

export const ROWS: Record<string, Row> = {
  'limit, with a rate': async (limiter) => [await limiter.limit('key', '10/s'), await limiter.limit('key', '10/s', { wait: '1s' })],
  limits: (limiter) => limiter.limits(['key'], ['10/s', '100/h'], { wait: '1s' }),
  ask: (limiter) => limiter.ask('key', 'api', { wait: '1s' }),
  'peek, with a rate': (limiter) => limiter.peek('key', '10/s'),
  'peek, with a policy': (limiter) => limiter.peek('key', 'api'),
  explain: (limiter) => limiter.explain('key', '10/s'),
  refund: (limiter) => limiter.refund('key', '10/s'),
  reset: async (limiter, server) => {
    await server.cli('RL.GCRA', `${limiter.connected.prefix}key`, '9', '10', '1s')
    await limiter.reset('key')
  },
  lease: (limiter, server) => limiter.lease('lease', { capacity: 1, ttl: '1s', wait: '1s' }, () => untilRenewed(server)),
  'budget, with a TokenBucket': budget(BUCKET),
  'budget, with a policy': budget('api'),
  'limits with hold, settle': heldLimits,
  'ready, with a rate or limiter': (limiter) => limiter.ready({ limits: ['10/s', BUCKET] }),
  'ready, with a Limit': (limiter) => limiter.ready({ limits: [new Limit('10/s', { on: 2 })] }),
  'ready, with a Concurrent': (limiter) => limiter.ready({ limits: [ONE] }),
  'ready, with policies only': (limiter) => limiter.ready({ policies: ['api', 'jobs'] }),
  'middleware: limits': middleware([minute, { name: 'function', key: ann, limit: () => '5/m' }]),
  'middleware: a Concurrent': middleware([minute, lease('lease')], { lease: true }),
  'middleware: several Concurrent': middleware([lease('one'), lease('two')], { lease: true }),
  'middleware: an estimate': middleware([{ name: 'tokens', key: ann, limit: BUCKET, estimate: 60 }]),
  'middleware: a rule with counts': middleware([{ name: 'failed', key: ann, limit: BUCKET, counts: Boolean }]),
  'middleware: a policy': middleware([policy('api')]),
  'middleware: policies that only functions return': middleware([policy(() => 'api')]),
  'middleware: a policy with leases': middleware([policy('jobs')]),
  'middleware: a policy with an estimate': middleware([{ name: 'policy', key: ann, policy: 'api', estimate: 60 }]),
  'middleware: several policies': middlewareRefuses([policy('api'), none]),
  'middleware: limits and a policy': middlewareRefuses([minute, none]),
  'middleware: limits and shed': middleware([minute], { shed: true }),
}
