/** What limiters can do, and which of their parameters are their rate. */

import { FACTS, type Capability } from './catalog.js'
import type { Limiter } from './values.js'

/** What is known of a limiter. */
export interface Facts {
  readonly can: readonly Capability[]
  /** What it can do with an option, if that differs. */
  readonly with?: Readonly<Record<string, readonly Capability[]>>
  /** The field with the most at once, if it is another one than `count`. */
  readonly burst?: string
  /** The field with the count per time. If there is only `per`, the count is 1. */
  readonly count?: string
  /** The field with that time. */
  readonly per?: string
}

const ALL: Readonly<Record<string, Facts>> = FACTS
// What most buckets and windows can do. The server says so if another limiter cannot.
const UNKNOWN: Facts = { can: ['joint', 'partial', 'force', 'refund', 'hold', 'block'] }

/** The facts of the limiter of this name. */
export function factsOf(name: string): Facts {
  return Object.hasOwn(ALL, name) ? ALL[name]! : UNKNOWN
}

/** Whether a limiter, with its options, can do this. */
export function can({ name, words }: Pick<Limiter, 'name' | 'words'>, capability: Capability): boolean {
  const facts = factsOf(name)
  const option = Object.keys(facts.with ?? {}).find((token) => words.includes(token))
  return (facts.with?.[option ?? ''] ?? facts.can).includes(capability)
}
