/** The applications that the middleware is tested with. They differ by the framework, and not in what they do. */

import { setTimeout as pause } from 'node:timers/promises'
import type { RateLimiter } from 'redis-ratelimit'
import type { Rule, Shed, Spent } from 'redis-ratelimit/express'

/** A request, as the rules of these tests see it. */
export interface View {
  path: string
  query: URLSearchParams
  header(name: string): string | undefined
}

/** What the handler of an application does. */
export interface Answer {
  /** Parts of the body. It may be endless. */
  parts: AsyncIterable<string>
  /** An error instead of a response. */
  error?: Error
}

export interface Application {
  url: string
  close(): Promise<unknown>
}

/** Makes an application of the framework, whose every route answers as {@link answer} says. It checks its rules first. */
export type Make = (options: { limiter: RateLimiter; rules: Rule<View>[]; shed?: Shed<View> }) => Promise<Application>

/** The rules of a framework, made of those of the tests. */
export function rulesFor<R>(rules: Rule<View>[], view: (request: R) => View): Rule<R>[] {
  const seen = (value: unknown) => (typeof value === 'function' ? (request: R) => (value as (view: View) => unknown)(view(request)) : value)
  return rules.map((rule) => Object.fromEntries(Object.entries(rule).map(([name, value]) => [name, seen(value)])) as unknown as Rule<R>)
}

export function shedFor<R>(shed: Shed<View> | undefined, view: (request: R) => View): Shed<R> | undefined {
  return shed && { ...shed, tier: (request: R) => shed.tier(view(request)) }
}

/** What all routes of all applications do: `/spend?tokens=..` counts and says so, `/stream` ticks, `/throw` fails. */
export function answer({ path, query }: View, spent: Spent): Answer {
  if (path === '/throw') return { parts: said(''), error: new Error('the handler fails') }
  if (path === '/stream') return { parts: ticks() }
  if (path === '/spend') return { parts: words(Number(query.get('tokens')), Number(query.get('fail') ?? Infinity), spent) }
  return { parts: said('ok') }
}

async function* said(text: string) {
  yield text
}

async function* ticks() {
  for (;;) {
    yield 'tick\n'
    await pause(20)
  }
}

async function* words(tokens: number, fail: number, spent: Spent) {
  spent['tokens'] = 0
  for (let i = 0; i < tokens; i++) {
    if (i === fail) throw new Error('the model is gone')
    spent['tokens'] += 1
    yield 'word '
    await pause(5)
  }
}
