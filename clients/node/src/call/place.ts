/** What a refusal is kept under. */

import type { Call } from './call.js'

/** What a refusal is kept under. */
export interface Place {
  /** The keys of the call. What is given back to one of them ends the refusal. */
  readonly keys: readonly string[]
  /** The keys as one word, and with them the item of a sketch: each item has a limit of its own. */
  readonly group: string
  /** The whole call. */
  readonly call: string
}

/** The place of a call. */
export function placeOf({ keys, words }: Call, item?: string): Place {
  return { keys, group: JSON.stringify([keys, item]), call: JSON.stringify(words) }
}
