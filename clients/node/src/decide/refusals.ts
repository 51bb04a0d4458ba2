/** Refusals in memory: a call that was refused is not asked again before it can be admitted. */

import type { Place } from '../call/questions.js'

interface Refusal {
  reply: unknown
  since: number
  until: number
}

interface Group {
  keys: readonly string[]
  calls: Map<string, Refusal>
}

// Keys are asked for few limits and costs.
const CALLS = 8

/**
 * Refusals by keys and call. Bounded: the keys that were used longest ago go first. Times are in ms.
 *
 * A refusal may arrive after something was given back that it does not know of:
 *
 * ```text
 * client             server
 * limit   ───────▶   refused      the answer is slow
 * refund  ───────▶   given back
 *         ◀───────   the refund: the key is forgotten, in generation 1
 *         ◀───────   the refusal of generation 0: it is not kept
 * ```
 */
export class Refusals {
  readonly #groups = new Map<string, Group>()
  readonly #ofKey = new Map<string, Set<string>>()
  // The generation in which a key was forgotten last. Of keys that are no longer here, the latest is the floor.
  readonly #forgotten = new Map<string, number>()
  #generation = 0
  #floor = 0

  /**
   * @param most - the most groups: keys of one call, or items of a sketch
   * @param longest - the longest time that a refusal is remembered
   */
  constructor(private readonly most: number, private readonly longest: number) {}

  /** It grows with each {@link forget}. A call remembers that in which it was asked. */
  get generation(): number {
    return this.#generation
  }

  /** The refusal of this call and its age, if it still holds. */
  find({ group, call }: Place, now: number): { reply: unknown; age: number } | undefined {
    const known = this.#groups.get(group)
    const refusal = known?.calls.get(call)
    if (known === undefined || refusal === undefined) return undefined
    if (now >= refusal.until) {
      known.calls.delete(call)
      if (known.calls.size === 0) this.#drop(group)
      return undefined
    }
    this.#groups.delete(group)
    this.#groups.set(group, known)
    return { reply: refusal.reply, age: now - refusal.since }
  }

  /**
   * Remembers a refusal, unless something was given back since it was asked.
   *
   * @param retryAfter - how long it holds. `null`: it will never be admitted
   * @param asked - the generation in which it was asked
   */
  keep({ keys, group, call }: Place, reply: unknown, retryAfter: number | null, now: number, asked = this.#generation): void {
    if (asked < this.#floor || keys.some((key) => (this.#forgotten.get(key) ?? 0) > asked)) return
    const calls = this.#groups.get(group)?.calls ?? new Map<string, Refusal>()
    this.#groups.delete(group)
    const [first] = calls.keys()
    if (calls.size >= CALLS && first !== undefined && !calls.has(call)) calls.delete(first)
    calls.delete(call)
    calls.set(call, { reply, since: now, until: now + Math.min(retryAfter ?? this.longest, this.longest) })
    this.#groups.set(group, { keys, calls })
    for (const key of keys) this.#ofKey.set(key, (this.#ofKey.get(key) ?? new Set()).add(group))
    const [oldest] = this.#groups.keys()
    if (this.#groups.size > this.most && oldest !== undefined) this.#drop(oldest)
  }

  /** Forgets the refusals of all calls with one of these keys, to which something was given back. */
  forget(keys: readonly string[]): void {
    this.#generation += 1
    for (const key of keys) {
      for (const group of this.#ofKey.get(key) ?? []) this.#drop(group)
      this.#forgotten.delete(key)
      this.#forgotten.set(key, this.#generation)
      const [oldest] = this.#forgotten
      if (this.#forgotten.size <= this.most || oldest === undefined) continue
      this.#forgotten.delete(oldest[0])
      this.#floor = oldest[1]
    }
  }

  /** The number of groups. */
  get size(): number {
    return this.#groups.size
  }

  #drop(group: string): void {
    const { keys = [] } = this.#groups.get(group) ?? {}
    this.#groups.delete(group)
    for (const key of keys) {
      const groups = this.#ofKey.get(key)
      groups?.delete(group)
      if (groups?.size === 0) this.#ofKey.delete(key)
    }
  }
}
