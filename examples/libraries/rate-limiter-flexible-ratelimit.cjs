// RateLimiterRatelimit: rate-limiter-flexible's RateLimiterRedis with RL.FIXEDWINDOW, RL.REFUND and RL.PEEK instead of
// its Lua. Options, methods and RateLimiterRes are RateLimiterRedis' own.
//
// What is set by hand (block, set, blockDuration), never ends (duration 0) or has a script of the caller's stays a string,
// as RateLimiterRedis has it: such a window has another length than the limiter's. RL.* answers WRONGTYPE to it, and
// RateLimiterRedis goes on. So keys that an earlier deployment left in Redis count on until they expire.

const { RateLimiterRedis } = require('rate-limiter-flexible')

// The library counts on over the limit, to tell when to block; it compares itself. Not 2^53 - 1: the clients add up a
// reply's digits in floating point, and the last one is lost so near to 2^53.
const UNLIMITED = 1e15

const isString = (error) => error.message.startsWith('WRONGTYPE')
// [points consumed, ms left], which RateLimiterRedis makes a RateLimiterRes of.
const consumed = ([, limit, remaining, , reset]) => [limit - remaining, reset]

class RateLimiterRatelimit extends RateLimiterRedis {
  constructor(opts) {
    super(opts)
    this._ownScript = Boolean(opts.customIncrTtlLuaScript)
  }

  async _rl(...words) {
    const all = words.map(String)
    // ioredis has `call`, node-redis `sendCommand`.
    return consumed(await (this.client.call ? this.client.call(...all) : this.client.sendCommand(all)))
  }

  async _upsert(rlKey, points, msDuration, forceExpire = false) {
    const whole = Number.isInteger(points) || /^[1-9][0-9]*$/.test(points)
    // It also has the words for what is no number, and for a client that is not connected.
    if (forceExpire || this._ownScript || msDuration < 1 || !whole || !this._isRedisReady(rlKey, false)) {
      return super._upsert(rlKey, points, msDuration, forceExpire)
    }
    const window = [UNLIMITED, Math.round(msDuration), 'COST', Math.abs(points)]
    try {
      return points < 0
        ? await this._rl('RL.REFUND', rlKey, 'FIXEDWINDOW', ...window)
        : await this._rl('RL.FIXEDWINDOW', rlKey, ...window)
    } catch (error) {
      if (!isString(error)) throw error
      return super._upsert(rlKey, points, msDuration)
    }
  }

  async _get(rlKey, options = {}) {
    const msDuration = this._getKeySecDuration(options) * 1000
    if (msDuration < 1 || !this._isRedisReady(rlKey, true)) return super._get(rlKey)
    try {
      const [points, ms] = await this._rl('RL.PEEK', rlKey, 'FIXEDWINDOW', UNLIMITED, Math.round(msDuration), 'COST', 0)
      return points > 0 ? [points, ms] : null
    } catch (error) {
      if (!isString(error)) throw error
      return super._get(rlKey)
    }
  }
}

module.exports = { RateLimiterRatelimit }
