/** The words that end what was taken. */

import { ConfigurationError } from '../errors.js'
import { shown } from './arguments.js'
import { Call } from './call.js'
import { Limit, limitOf, type LimitLike } from './limit.js'
import type { Outcome } from './options.js'
import type { Limiter } from './values.js'

/** What `RL.ASKSETTLE` may have besides. */
export interface PolicyParts {
  tenant?: string | undefined
  keys?: readonly string[] | undefined
  leaseId?: string | undefined
}

const OUTCOMES: readonly Outcome[] = ['OK', 'DROP', 'IGNORE']

/** Ends a lease on all of these keys. */
export function release(prefix: string, keys: readonly string[], id: string, outcome: Outcome = 'OK'): Call {
  if (!OUTCOMES.includes(outcome)) throw new ConfigurationError(`outcome must be 'OK', 'DROP' or 'IGNORE', not ${shown(outcome)}`)
  const [key = ''] = keys
  const call = keys.length === 1 ? new Call(prefix, ['RL.RELEASE']).key(key) : new Call(prefix, ['RL.MULTIRELEASE']).numbered(keys)
  return call.value(id).option('OUTCOME', outcome === 'OK' ? undefined : outcome)
}

/** `RL.SETTLE`: settles a hold of a limiter's own command. */
export function settleOne(prefix: string, key: string, limiter: Limiter, id: string, cost: number, tenant?: string): Call {
  return new Call(prefix, ['RL.SETTLE']).key(key).value(id).limiter(limiter).option('COST', cost).option('TENANT', tenant)
}

/** `RL.MULTISETTLE`: settles a hold of `RL.MULTI`. `cost` is that of the limits without one of their own. */
export function settle(prefix: string, keys: readonly string[], limits: readonly LimitLike[], id: string, cost: number): Call {
  return new Call(prefix, ['RL.MULTISETTLE']).numbered(keys).value(id).option('COST', cost).limits(limits.map(unweighted))
}

/** `RL.ASKSETTLE`: settles a hold of `RL.ASK`. */
export function settleAsk(prefix: string, key: string, policy: string, id: string, cost: number, parts: PolicyParts): Call {
  const { keys, leaseId, tenant } = parts
  const call = new Call(prefix, ['RL.ASKSETTLE']).key(key).value(policy).value(id)
  return call.option('COST', cost).option('ID', leaseId).option('TENANT', tenant).more(keys)
}

// A settlement names the tenant, and does not change its weight.
function unweighted(like: LimitLike): LimitLike {
  const { limiter, on, cost, shadow, tenant, weight } = limitOf(like)
  return weight === undefined ? like : new Limit(limiter, { on, cost, shadow, tenant })
}
