/**
 * Rate limits in Redis, by the commands of the module `ratelimit`.
 *
 * @module
 */

export type { HoldOptions } from './call/call.js'
export type {
  AskCallOptions,
  BudgetOptions,
  LeaseOptions,
  LimitCallOptions,
  PeekCallOptions,
  UndoOptions,
} from './call/options.js'
export type { RedisClient } from './wire/client.js'
export * from './commands.js'
export type { Counters } from './decide/counters.js'
export { AskDecision, Decision, MultiDecision, SettledDecision } from './decide/decision.js'
export { CallError, ConfigurationError, RateLimitError, Refused, Unavailable } from './errors.js'
export { combinedHeaders, type Named } from './decide/headers.js'
export { Budget, Hold, type HoldCallOptions } from './taken/hold.js'
export { Lease } from './taken/lease.js'
export { Limit, type LimitOptions } from './call/limit.js'
export { Limiter, type Duration, type Milliseconds } from './call/values.js'
export type { Logger } from './decide/log.js'
export type { BreakerOptions, RateLimiterOptions, RefusalCacheOptions } from './call/settings.js'
export { Rate, type LimiterLike, type LimitLike, type RateOptions } from './call/rate.js'
export { RateLimiter } from './limiter.js'
export type { Shed, TopKey, Value } from './decide/replies.js'
export type { SettleAskOptions, SettleOptions } from './taken/undo.js'
export type { VerifyOptions } from './wire/verify.js'
