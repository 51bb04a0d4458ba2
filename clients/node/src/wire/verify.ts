/**
 * Limits and policies, checked against the server before the first request.
 *
 * @module
 */

import { randomUUID } from 'node:crypto'
import { checkFlag, checkList, known, type Names } from '../call/arguments.js'
import { Call } from '../call/call.js'
import type { Core } from '../core.js'
import { CallError, ConfigurationError, Unavailable } from '../errors.js'
import { Limit } from '../call/limit.js'
import { textWord, type Limiter } from '../call/values.js'
import { limiterOf, type LimitLike } from '../call/rate.js'

/** What is checked. */
export interface VerifyOptions {
  /** Limiters, rates or {@link Limit}s. A lease needs no id. */
  limits?: readonly LimitLike[] | undefined
  /** The names of policies. */
  policies?: readonly string[] | undefined
  /** Whether no answer is an error. Else it is logged. */
  required?: boolean | undefined
}

// At the start a connection is made, and nobody waits.
const TIMEOUT = 2000
// Random keys until each node of a cluster has one.
const TRIALS = 2000
const ID = 'verify'

const NAMES: Names<VerifyOptions> = { limits: true, policies: true, required: true }

/** Checks limits and policies. Returns whether the server answered. */
export async function verify(core: Core, options: VerifyOptions): Promise<boolean> {
  const { limits = [], policies = [], required = false } = known('options', options, NAMES)
  checkList('limits', limits)
  checkList('policies', policies)
  for (const policy of policies) textWord('policy', policy)
  checkFlag('required', required)
  const parsed = limits.map((like) =>
    typeof like === 'object' && like !== null && 'clause' in like ? (like as Limit) : limiterOf(like as Limiter),
  )
  const prefix = core.channel.keyPrefix + core.settings.prefix
  try {
    if (parsed.length + policies.length === 0) parsed.push(limiterOf('1/s'))
    for (const limit of parsed) await send(core, limitCall(prefix, limit), `the limit ${described(limit)}`)
    for (const policy of policies) await askPolicy(core, prefix, ownKey(), policy)
    for (const key of policies.length > 0 ? keys(core, prefix) : []) {
      for (const policy of policies) await askPolicy(core, prefix, key, policy)
    }
    return true
  } catch (error) {
    if (!(error instanceof Unavailable) || required) throw error
    core.channel.log.warn('verify', `limits and policies could not be checked: ${error.message}`)
    return false
  }
}

async function send(core: Core, call: Call, what: string): Promise<void> {
  try {
    await core.channel.send(call, { timeout: Math.max(TIMEOUT, core.settings.timeout) })
  } catch (error) {
    if (!(error instanceof CallError)) throw error
    throw new ConfigurationError(reason(error, what), { cause: error })
  }
}

function reason({ command, code, reply }: CallError, what: string): string {
  if (/^ERR unknown command/i.test(reply)) return `the server has no module ratelimit (${reply})`
  // These are about the caller, and not about the limit.
  if (['NOAUTH', 'WRONGPASS', 'NOPERM'].includes(code)) return `the server rejects ${command}: ${reply}`
  return `${what} is wrong: ${reply}`
}

// A limiter alone is looked at by RL.PEEK, which takes those that RL.MULTI does not.
function limitCall(prefix: string, limit: Limit | Limiter): Call {
  if (!(limit instanceof Limit) && !('clause' in limit))
    return look(new Call(prefix, ['RL.PEEK'], true).key(ownKey()), limit as Limiter)
  const { limiter, on = 1, cost, shadow } = limit as Limit
  const own = ownKey()
  const call = new Call(prefix, ['RL.MULTIPEEK'], true).numbered(Array.from({ length: on }, (_, i) => `${own}${i}`))
  call
    .option('COST', cost === undefined ? 0 : undefined)
    .value('LIMIT')
    .limiter(limiter)
  return withId(call, limiter).value('ON').value(on).option('COST', cost).flag('SHADOW', shadow)
}

function look(call: Call, limiter: Limiter): Call {
  return withId(call.limiter(limiter), limiter).option('COST', 0)
}

// The id of a lease stands before its options.
function withId(call: Call, limiter: Limiter): Call {
  const fields = limiter as unknown as { id?: string }
  if (limiter.name === 'CONCURRENT' && fields.id === undefined)
    call.words.splice(call.words.lastIndexOf('CONCURRENT') + 3, 0, ID)
  return call
}

function described(limit: Limit | Limiter): string {
  return 'clause' in limit ? limit.clause.slice(1).join(' ') : [limit.name, ...limit.words].join(' ')
}

/** A key for each primary of a cluster that is connected: each has its own policies. */
function keys({ channel }: Core, prefix: string): string[] {
  const { client } = channel
  if (client.primaries <= 1) return []
  const found = new Map<string | undefined, string>()
  for (let trial = 0; trial < TRIALS && found.size < client.primaries; trial += 1) {
    const key = ownKey()
    const owner = client.owner(prefix + key)
    if (!found.has(owner)) found.set(owner, key)
  }
  return [...found.values()]
}

// A policy may be for several keys, and says for how many.
async function askPolicy(core: Core, prefix: string, key: string, policy: string): Promise<void> {
  const call = (more: number) => {
    const others = Array.from({ length: more }, (_, i) => `${key}${i}`)
    return new Call(prefix, ['RL.ASKPEEK']).key(key).value(policy).option('ID', ID).more(others)
  }
  const what = `the policy '${policy}'`
  try {
    await send(core, call(0), what)
  } catch (error) {
    const [, needed] = /needs (\d+) keys/.exec((error as Error).message) ?? []
    if (needed === undefined) throw error
    await send(core, call(Number(needed) - 1), what)
  }
}

// With a hash tag, so that further keys share its slot.
function ownKey(): string {
  return `{ratelimit:verify:${randomUUID()}}`
}
