/** What the gates before this one have found out about a request, so that their headers add up, and each rule is asked once. */

import { combinedHeaders, legacyHeaders, retryAfterOf, type Fields, type Spread } from '../decide/headers.js'
import type { Decision } from '../decide/decision.js'

/** A decision, the name of its rule, and how its `Retry-After` is spread. */
export type Answer = readonly [name: string, decision: Decision, spread: Spread | undefined]

/** The headers of responses. */
export type HeaderStyle = 'draft' | 'legacy' | 'off'

/**
 * What all gates of a request until now have found out. Each request has one of its own, and every gate that it enters gets the
 * same.
 */
export class Stack {
  /** The decisions by the names of the rules. */
  readonly decisions: Record<string, Decision> = {}
  /** The headers of the response. */
  headers: Fields = {}
  readonly #asked = new Map<object, Set<object>>()
  #named: readonly Answer[] = []
  #stops = 0

  /** Whether a gate still asks about the request, or lets it wait. Then its handler has not begun. */
  get isStopped(): boolean {
    return this.#stops > 0
  }

  /** Whether this is asked about the request for the first time by a limiter. From then on it is not. */
  isFirst(limiter: object, one: object): boolean {
    const asked = this.#asked.get(limiter) ?? new Set()
    this.#asked.set(limiter, asked)
    if (asked.has(one)) return false
    asked.add(one)
    return true
  }

  /** The request is stopped by a gate until this is done. */
  async stop<T>(until: () => Promise<T>): Promise<T> {
    this.#stops += 1
    try {
      return await until()
    } finally {
      this.#stops -= 1
    }
  }

  /**
   * Adds the answers of a gate. Of two rules with one name the later counts.
   *
   * @param unix - the Unix time, in ms
   */
  add(named: readonly Answer[], allowed: boolean, style: HeaderStyle, unix: number): void {
    for (const [name, decision] of named) this.decisions[name] = decision
    const all = [...this.#named.filter(([name]) => !named.some(([other]) => other === name)), ...named]
    if (style !== 'off') this.#named = all
    this.headers = { ...this.headers, ...headersOf(all, allowed, style, unix) }
  }
}

function headersOf(named: readonly Answer[], allowed: boolean, style: HeaderStyle, unix: number): Fields {
  if (style === 'draft') return combinedHeaders(named, allowed)
  return style === 'legacy' ? legacyHeaders(named, allowed, unix) : retryAfterOf(named, allowed)
}

const STACKS = new WeakMap<object, Stack>()

/** That of a framework's request, whose object no other request has. */
export function stackOf(request: object): Stack {
  const known = STACKS.get(request) ?? new Stack()
  STACKS.set(request, known)
  return known
}
