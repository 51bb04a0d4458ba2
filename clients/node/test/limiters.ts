/** Limiters of a test, which end with it. */

import type { TestContext } from 'node:test'
import { RateLimiter, type RateLimiterOptions } from 'redis-ratelimit'
import type { Kind, MakeOptions } from './kinds.js'

/** A limiter on a client of this kind, and the lines of its log. */
export async function limiterOn(
  t: TestContext,
  kind: Kind,
  port: number,
  options: RateLimiterOptions = {},
  client: MakeOptions = {},
) {
  const made = await kind.client(port, client)
  return limiterOf(t, made, options)
}

/** The same on a cluster. */
export async function limiterOnCluster(
  t: TestContext,
  kind: Kind,
  port: number,
  options: RateLimiterOptions = {},
  client: MakeOptions = {},
) {
  const made = await kind.cluster(port, client)
  return limiterOf(t, made, options)
}

/** A limiter on any client. */
export function limiterOf(t: TestContext, made: Awaited<ReturnType<Kind['client']>>, options: RateLimiterOptions) {
  const lines: string[] = []
  // Longer time-outs than a service would have: the machine may be busy.
  const limiter = new RateLimiter(made.redis, {
    timeoutMs: 5000,
    connectTimeoutMs: 5000,
    logger: (line) => lines.push(line),
    ...options,
  })
  t.after(async () => {
    await limiter.close()
    made.close()
  })
  return { limiter, lines, raw: made.raw }
}
