/**
 * Log lines: at most one each second for each kind of trouble.
 *
 * @module
 */

/** Takes a line of the log. */
export type Logger = (line: string) => void

const INTERVAL = 1000
// Kinds are few. This is against a server that makes up error codes.
const MOST = 100

/** Writes lines, and counts those that it leaves out. */
export class Log {
  readonly #kinds = new Map<string, { since: number; left: number }>()

  constructor(private readonly logger: Logger) {}

  /** Writes a line, unless one of its kind was written within the last second. */
  warn(kind: string, line: string, now = performance.now()): void {
    const known = this.#kinds.get(kind)
    if (known !== undefined && now - known.since < INTERVAL) {
      known.left += 1
      return
    }
    const more = known?.left ? ` (and ${known.left} more like it before)` : ''
    if (this.#kinds.size >= MOST) this.#kinds.clear()
    this.#kinds.set(kind, { since: now, left: 0 })
    this.logger(`redis-ratelimit: ${line}${more}`)
  }
}

// What is before the first colon or brace.
const BEGIN = /^([^:{]{1,40})[^:{]*[:{]/

/**
 * A key as it stands in a line: its beginning. The rest may be an address or an API key, and a key without a colon may be
 * one as a whole.
 */
export function shownKey(key: string): string {
  const [, begin] = BEGIN.exec(key) ?? []
  return begin === undefined ? '' : `, for '${begin}…'`
}
