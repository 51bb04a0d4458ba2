/** A gate, made for one test. */

import type { TestContext } from 'node:test'
import { Redis } from 'ioredis'
import { RateLimiter, UNLIMITED, type RateLimiterOptions } from 'redis-ratelimit'
import { Gate, type GateOptions, type Rule } from 'redis-ratelimit/gate'
import { quiet } from './rate-limiter-flexible.clients.js'

/** The request of these tests says who asks. */
export interface Asking {
  user?: string
}

export const user = ({ user }: Asking) => user ?? UNLIMITED

let number = 0

interface Options extends RateLimiterOptions {
  shed?: GateOptions<Asking>['shed']
}

/** A gate with a prefix of its own, and what is stored under it. */
export function gateOn(t: TestContext, port: number, rules: Rule<Asking>[], { shed, ...options }: Options = {}) {
  const lines: string[] = []
  const prefix = `g${number++}:`
  // Tests wait longer than a service would: a machine may be busy.
  const all = { prefix, timeoutMs: 3000, logger: (line: string) => lines.push(line), ...options }
  const redis = quiet(new Redis(port, { lazyConnect: true }))
  const limiter = new RateLimiter(redis, all)
  t.after(async () => {
    redis.disconnect()
    await limiter.close()
  })
  const left = async (key: string, ...words: (string | number)[]) => ((await redis.call('RL.PEEK', prefix + key, ...words, 'COST', 0)) as number[])[2]
  return { gate: new Gate<Asking>({ limiter, rules, shed }), limiter, lines, left }
}
