/** Rate limits in Redis, by the commands of the module `ratelimit`. */

export type { HoldOptions } from './call/call.js'
export { Limit, type LimitLike, type LimitOptions } from './call/limit.js'
export * from './call/limiters.js'
export type {
  AdaptOptions, AskCallOptions, BudgetOptions, CallOptions, ExplainOptions, LeaseOptions, LimitCallOptions, LimitsCallOptions, Drops,
  Outcome, MannerOptions, PeekCallOptions, RefundOptions, SettleAskOptions, SettleOptions, UndoOptions,
} from './call/options.js'
export { Rate, type LimiterLike, type RateOptions } from './call/rate.js'
export type { BreakerOptions, Logger, RefusalCacheOptions, SettingsOptions } from './call/settings.js'
export { Share, type ShareOptions } from './call/share.js'
export type { TenantOptions } from './call/tenant.js'
export type { Duration, Limiter } from './call/values.js'
export * from './commands.js'
export type { Counters } from './decide/counters.js'
export { Decision, Refused, type AskDecision, type LeaseDecision, type MultiDecision, type SettledDecision, type Source } from './decide/decision.js'
export type { Shed, TopEntry, Value } from './decide/replies.js'
export { CallError, Closed, ConfigurationError, RateLimitError, Unavailable } from './errors.js'
export { clientAddress, type ClientAddressOptions } from './gate/address.js'
export { UNLIMITED } from './gate/rules.js'
export type { Asked, Hooks } from './decide/hooks.js'
export { RateLimiter, type RateLimiterOptions } from './limiter.js'
export type { Local, LocalOptions } from './local/local.js'
export type { Budget, Hold, HoldCallOptions } from './taken/hold.js'
export type { Lease } from './taken/lease.js'
export type { RedisClient } from './wire/clients.js'
export type { ReadyOptions } from './wire/ready.js'
