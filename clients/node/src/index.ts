/**
 * Rate limits in Redis, by the commands of the module `ratelimit`.
 *
 * @module
 */

export type { HoldOptions } from './call.js'
export type {
  AskCallOptions,
  BudgetOptions,
  LeaseOptions,
  LimitCallOptions,
  PeekCallOptions,
  UndoOptions,
} from './call-options.js'
export type { RedisClient } from './clients/client.js'
export * from './commands.js'
export type { Counters } from './counters.js'
export { AskDecision, Decision, MultiDecision, SettledDecision } from './decision.js'
export { CallError, ConfigurationError, RateLimitError, Refused, Unavailable } from './errors.js'
export { combinedHeaders, type Named } from './headers.js'
export { Budget, Hold, type HoldCallOptions } from './hold.js'
export { Lease } from './lease.js'
export { Limit, type LimitOptions } from './limit.js'
export { Limiter, type Duration, type Milliseconds } from './limiter.js'
export type { Logger } from './log.js'
export type { BreakerOptions, RateLimiterOptions, RefusalCacheOptions } from './options.js'
export { Rate, type LimiterLike, type LimitLike, type RateOptions } from './rate.js'
export { RateLimiter } from './rate-limiter.js'
export type { Shed, TopKey, Value } from './replies.js'
export type { SettleAskOptions, SettleOptions } from './undo.js'
export type { VerifyOptions } from './verify.js'
