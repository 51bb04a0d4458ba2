/**
 * Leases and holds of calls that the application sent itself, ended until that is certain.
 *
 * @module
 */

import { known, type Names } from '../call/arguments.js'
import { costWord, type UndoOptions } from '../call/options.js'
import type { Core, RepeatOptions } from '../core.js'
import { checkedMore, checkKeysAndLimits } from '../call/questions.js'
import { integerWord, textWord } from '../call/values.js'
import { shownKey } from '../decide/log.js'
import { span } from '../call/settings.js'
import type { LimitLike } from '../call/rate.js'

/** What `RateLimiter.settle` may be told. */
export interface SettleOptions extends UndoOptions {
  /** The actual cost of the limits without one of their own. 1 by default. */
  cost?: number | undefined
}

/** What `RateLimiter.settleAsk` may be told. */
export interface SettleAskOptions extends UndoOptions {
  /** The keys 2, 3 and so on. */
  keys?: readonly string[] | undefined
  /** The id of leases, for policies with leases. */
  leaseId?: string | undefined
}

const OF_UNDO: Names<UndoOptions> = { within: true, certain: true }
const OF_SETTLE: Names<SettleOptions> = { ...OF_UNDO, cost: true }
const OF_SETTLE_ASK: Names<SettleAskOptions> = { ...OF_UNDO, keys: true, leaseId: true }

/** Ends a lease. */
export function release(core: Core, keys: string | readonly string[], id: string, options: UndoOptions): Promise<void> {
  return core.release([keys].flat(), textWord('id', id), repeated(known('options', options, OF_UNDO)))
}

/** Settles a hold of `RL.MULTI`. */
export function settle(
  core: Core,
  keys: readonly string[],
  limits: readonly LimitLike[],
  id: string,
  options: SettleOptions,
): Promise<void> {
  const { within, certain } = repeated(known('options', options, OF_SETTLE))
  const { cost } = options
  checkKeysAndLimits(keys, limits)
  textWord('id', id)
  costWord({ cost })
  const attempt = async () => {
    const { settled = 0 } = await core.commands.multiSettle(keys, id, limits, { cost })
    return certain || settled > 0
  }
  return core.repeats.run({ what: `RL.MULTISETTLE${shownKey(keys[0] ?? '')}`, attempt, within })
}

/** Settles a hold of `RL.ASK`. */
export function settleAsk(
  core: Core,
  key: string,
  policy: string,
  id: string,
  actual: number,
  options: SettleAskOptions,
): Promise<void> {
  const { within, certain } = repeated(known('options', options, OF_SETTLE_ASK))
  textWord('policy', policy)
  textWord('id', id)
  integerWord('actual', actual, 0)
  const { leaseId, keys } = options
  checkedMore(keys)
  const attempt = async () => {
    const { settled = 0 } = await core.commands.askSettle(key, policy, id, actual, { leaseId, moreKeys: keys })
    return certain || settled > 0
  }
  return core.repeats.run({ what: `RL.ASKSETTLE${shownKey(key)}`, attempt, within })
}

function repeated({ within, certain = true }: UndoOptions): RepeatOptions {
  return { within: span('within', within), certain }
}
