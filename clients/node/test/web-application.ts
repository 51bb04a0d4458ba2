/** The applications that the middleware is tested with. They differ by the framework, and not in what they do. */

import { setTimeout as pause } from 'node:timers/promises'
import type { RateLimiter } from 'redis-ratelimit'
import type { Rule, Spent } from 'redis-ratelimit/express'

/** A request, as the rules of these tests see it. */
export interface View {
  path: string
  query: URLSearchParams
  header(name: string): string | undefined
}

export interface Application {
  url: string
  close(): unknown
}

/** Makes an application of the framework, whose every route answers as {@link answer} says. It checks its rules first. */
export type Make = (options: { limiter: RateLimiter; rules: Rule<View>[] }) => Promise<Application>

/** The rules of a framework, made of those of the tests. */
export function rulesFor<R>(rules: Rule<View>[], view: (request: R) => View): Rule<R>[] {
  const seen = (value: unknown) => (typeof value === 'function' ? (request: R) => (value as (view: View) => unknown)(view(request)) : value)
  return rules.map((rule) => Object.fromEntries(Object.entries(rule).map(([name, value]) => [name, seen(value)])) as unknown as Rule<R>)
}

/** What all routes of all applications do: `/spend?tokens=..` counts and says so. */
export async function* answer({ path, query }: View, spent: Spent): AsyncIterable<string> {
  if (path !== '/spend') return yield 'ok'
  spent['tokens'] = 0
  for (let i = 0; i < Number(query.get('tokens')); i++) {
    spent['tokens'] += 1
    yield 'word '
    await pause(5)
  }
}
