/** Ends leases and holds, by the words that the server has for it. */

import type { LimitLike } from '../call/limit.js'
import type { Limiter } from '../call/values.js'
import * as replies from '../decide/replies.js'
import type { Connected } from './connected.js'
import type { EndingOptions } from './endings.js'

/** How long the server keeps what is ended, in ms, and whether it was surely taken. */
export type Times = Omit<EndingOptions, 'ended'>

/** What `RL.ASKSETTLE` may have besides. */
export interface PolicyParts {
  keys?: readonly string[] | undefined
  leaseId?: string | undefined
}

/** Ends a lease on all of these keys. */
export function release(to: Connected, keys: readonly string[], id: string, times: Times): Promise<void> {
  const [key = ''] = keys
  const call = keys.length === 1 ? to.call('RL.RELEASE').key(key) : to.call('RL.MULTIRELEASE').numbered(keys)
  return to.end(call.value(id), { ...times, ended: (reply) => Number(reply) > 0 })
}

/** Settles a hold of a limiter's own command. */
export function settle(to: Connected, key: string, limiter: Limiter, id: string, cost: number, times: Times): Promise<void> {
  const call = to.call('RL.SETTLE').key(key).value(id).limiter(limiter).option('COST', cost)
  return to.end(call, { ...times, ended: (reply) => replies.settled(reply).settled })
}

/** Settles a hold of `RL.MULTI`. `cost` is that of the limits without one of their own. */
export function settleLimits(
  to: Connected,
  keys: readonly string[],
  limits: readonly LimitLike[],
  id: string,
  cost: number,
  times: Times,
): Promise<void> {
  const call = to.call('RL.MULTISETTLE').numbered(keys).value(id).option('COST', cost).limits(limits)
  return to.end(call, { ...times, ended: (reply) => (replies.multi(reply).settled ?? 0) > 0 })
}

/** Settles a hold of `RL.ASK`. */
export function settlePolicy(
  to: Connected,
  key: string,
  policy: string,
  id: string,
  cost: number,
  { keys, leaseId }: PolicyParts,
  times: Times,
): Promise<void> {
  const call = to.call('RL.ASKSETTLE').key(key).value(policy).value(id).option('COST', cost).option('ID', leaseId).more(keys)
  return to.end(call, { ...times, ended: (reply) => (replies.askSettled(reply).settled ?? 0) > 0 })
}
