/** What is done to a limiter, step by step. The original and the backend must reply the same to each step. */

import { RateLimiterMemory } from 'rate-limiter-flexible'
import type { IRateLimiterRedisOptions, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible'

type Reply = RateLimiterRes | boolean | null
export type Step = (limiter: RateLimiterRedis, key: string) => Promise<Reply>

export interface Scenario {
  options?: Partial<IRateLimiterRedisOptions>
  steps: Step[]
}

type Points = number | string
const consume = (points: Points = 1, customDuration?: number): Step => (limiter, key) =>
  limiter.consume(key, points as number, customDuration === undefined ? {} : { customDuration })
const penalty = (points: Points = 1): Step => (limiter, key) => limiter.penalty(key, points as number)
const reward = (points: Points = 1, customDuration?: number): Step => (limiter, key) =>
  limiter.reward(key, points as number, customDuration === undefined ? {} : { customDuration })
const block = (seconds: number): Step => (limiter, key) => limiter.block(key, seconds)
const set = (points: number, seconds: number): Step => (limiter, key) => limiter.set(key, points, seconds)
const remove: Step = (limiter, key) => limiter.delete(key)
const get: Step = (limiter, key) => limiter.get(key)
const change = (changes: Partial<Pick<RateLimiterRedis, 'points'>>, step: Step): Step => (limiter, key) => {
  Object.assign(limiter, changes)
  return step(limiter, key)
}
const pause = (ms: number): Step => () => new Promise((resolve) => setTimeout(resolve, ms, null))

// Adds 100 s to the window each time that the points are used up.
const LONGER = `
local fresh = redis.call('set', KEYS[1], 0, 'EX', ARGV[2], 'NX')
local consumed = redis.call('incrby', KEYS[1], ARGV[1])
local ttl = redis.call('pttl', KEYS[1])
if not fresh and consumed % tonumber(ARGV[3]) == 0 then
  ttl = ttl + 100000
  redis.call('pexpire', KEYS[1], ttl)
end
return {consumed, ttl}`

/** The options are those of five points per 60 s, unless said otherwise. */
export const SCENARIOS: Record<string, Scenario> = {
  'consume until it is refused': { steps: [get, consume(), consume(3), consume(), consume(), consume(), get] },
  'consume more than all points at once': { steps: [consume(6), get, consume(), get] },
  'consume nothing, on a fresh key and later': { steps: [consume(0), get, consume(0), consume(2), consume(0), get] },
  'consume a string of digits': { steps: [consume('2'), consume('3'), consume('1'), get] },
  'consume what is no whole number': {
    steps: [consume(1.5), consume('2.0'), consume('x'), consume('-1'), consume(NaN), consume(Infinity), get],
  },
  'consume less than nothing': { steps: [consume(-2), get, consume(), consume(-1), consume(4), consume(3), get] },
  'penalty': { steps: [penalty(), penalty(3), get, penalty('2'), consume(), get] },
  'a negative penalty': { steps: [consume(3), penalty(-1), penalty(-4), get, consume()] },
  'reward less than was consumed': { steps: [consume(4), reward(), get, reward('2'), consume(), get] },
  'reward all that was consumed': { steps: [consume(3), reward(3), get, consume(), get] },
  'reward more than was consumed': { steps: [consume(2), reward(5), get, consume(7), consume(), consume(), get] },
  'reward of a fresh key': { steps: [reward(), reward(), get, consume(), get] },
  'a negative reward': { steps: [reward(-3), get, consume(3), get] },
  'cost of 10^15 and more, on a fresh key': { steps: [consume(1e15), get, consume(), get] },
  'cost of 10^15 and 1': { steps: [consume(1e15 + 1), get, consume(), reward(1e15 + 1), get] },
  'cost of 2^53 - 1': { steps: [consume(Number.MAX_SAFE_INTEGER), get, consume(), get] },
  'cost above 2^53': { steps: [consume(2 ** 60), get, consume(), get] },
  'a large cost on an open window': { steps: [consume(2), consume(5e15), get, consume(5e15), get, reward(5e15), get] },
  'many costs that are just not large': { steps: [consume(1e12), consume(1e12), get, reward(1e12), get] },
  'cost above 2^63': { steps: [consume(1e19), get, consume('99999999999999999999'), get, consume(), get] },
  'points of 2^53 - 1': { options: { points: Number.MAX_SAFE_INTEGER }, steps: [consume(), consume(1e12), consume(1e13), get] },
  'no points': { options: { points: 0 }, steps: [consume(), get] },
  'negative points': { options: { points: -2 }, steps: [reward(), reward(), consume(), reward(3), consume(), get] },
  'points change': { steps: [consume(4), change({ points: 2 }, consume()), change({ points: 9 }, consume()), get] },
  'customDuration shorter than the open window': { steps: [consume(), consume(1, 5), get, consume(), get] },
  'customDuration longer than the open window': { steps: [consume(), consume(1, 3600), get, consume(), get] },
  'customDuration opens a window': { steps: [consume(1, 3600), get, consume(), consume(1, 5), get, penalty(), get] },
  'customDuration 0 opens a window without an end': { steps: [consume(1, 0), get, consume(2, 0), get] },
  'customDuration 0 in an open window': { steps: [consume(), consume(1, 0), get, consume(), get] },
  'customDuration in fractions': { steps: [consume(1, 5.7), consume(1, 60.3), get, consume(), get] },
  'customDuration of a reward': { steps: [consume(3), reward(1, 3600), get, remove, reward(2, 3600), get] },
  'customDuration that ends': { steps: [consume(4, 2), consume(), pause(2100), get, consume(2), get] },
  'duration 1.5 is a second': { options: { duration: 1.5 }, steps: [consume(5), pause(1100), get, consume(), pause(1100), get] },
  'duration of a thousand years': { options: { duration: 31_536_000_000 }, steps: [consume(5), get, reward(), consume(2), get] },
  'duration 60.9 is a minute': { options: { duration: 60.9 }, steps: [consume(), consume(1, 60), get] },
  'duration 0.5 never ends': { options: { duration: 0.5 }, steps: [consume(), get, reward(3), consume(), get] },
  'duration 0 never ends': { options: { duration: 0 }, steps: [consume(), consume(5), get, reward(), get, remove, get] },
  'a window ends': { options: { duration: 1 }, steps: [consume(6), pause(1100), get, consume(), get] },
  'block': { steps: [block(3600), get, consume(), reward(6), get, consume()] },
  'block in an open window': { steps: [consume(2), block(3600), get, consume(), get] },
  'block ends': { steps: [consume(), block(2), consume(), pause(2100), get, consume(), get] },
  'block without an end, until the next consume': { steps: [block(0), get, consume(), get] },
  'block in fractions': { steps: [block(61.9), get, consume()] },
  'set': { steps: [set(3, 600), get, consume(2), consume(), get] },
  'set in an open window': { steps: [consume(4), set(1, 600), get, consume(3), get] },
  'set without an end': { steps: [set(12, 0), get, consume(), get] },
  'set below nothing': { steps: [set(-3, 600), get, consume(8), consume(), get] },
  'delete': { steps: [remove, consume(6), remove, get, consume(), block(60), remove, get, consume(), set(9, 60), remove, consume()] },
  'blockDuration': { options: { blockDuration: 3600 }, steps: [consume(5), consume(), get, consume(), get, remove, consume()] },
  'blockDuration of a large cost': { options: { blockDuration: 3600 }, steps: [consume(1e16), get, consume(), get] },
  'blockOnConsumed': {
    options: { blockDuration: 3600, blockOnConsumed: 8 },
    steps: [consume(6), get, consume(), consume(), get, consume(), get, block(60), get],
  },
  'inMemoryBlockOnConsumed': { options: { inMemoryBlockOnConsumed: 7 }, steps: [consume(6), consume(), consume(), get, remove, consume()] },
  'inMemoryBlockDuration': {
    options: { inMemoryBlockOnConsumed: 5, inMemoryBlockDuration: 3600 },
    steps: [consume(5), consume(), consume(), get, remove, consume()],
  },
  'inMemoryBlockOnConsumed with blockDuration': {
    options: { inMemoryBlockOnConsumed: 5, inMemoryBlockDuration: 30, blockDuration: 3600 },
    steps: [consume(6), consume(), get, remove, get],
  },
  'execEvenly': { options: { duration: 6, execEvenly: true }, steps: [consume(), consume(), consume(), get] },
  'execEvenlyMinDelayMs': {
    options: { points: 1000, execEvenly: true, duration: 60, execEvenlyMinDelayMs: 150 },
    steps: [consume(), consume(), get],
  },
  'customIncrTtlLuaScript': {
    options: { customIncrTtlLuaScript: LONGER, points: 2 },
    steps: [consume(), consume(), get, consume(), consume(), get, reward(), get, consume(1, 5), get],
  },
  'keys without a prefix of the limiter': { options: { keyPrefix: '' }, steps: [consume(4), block(600), get, consume(), remove, get] },
  'an insuranceLimiter that is not needed': {
    options: { insuranceLimiter: new RateLimiterMemory({ points: 1, duration: 1 }) },
    steps: [consume(5), consume(), get],
  },
}
