/** Log lines: at most one each second for each kind of trouble. */

import type { Call } from '../call/call.js'
import type { Logger } from '../call/settings.js'
import { CallError, type Unavailable } from '../errors.js'

const INTERVAL = 1000
// Kinds are few. This is against a server that makes up error codes.
const MOST = 100

/** Writes lines, and counts those that it leaves out. */
export class Log {
  readonly #kinds = new Map<string, { since: number; left: number }>()

  constructor(private readonly logger: Logger, private readonly now: () => number) {}

  /** Writes what became of a call that failed. */
  failed(call: Call, what: string, error: Unavailable | CallError): void {
    const [kind, reason] = error instanceof CallError ? [error.code, error.reply] : [error.kind, error.reason]
    this.about(call, error.node, what, reason, kind)
  }

  /** Writes what became of a call. */
  about({ command, keys, prefix }: Call, node: string, what: string, reason: string, kind = ''): void {
    this.warn(`${what} ${kind}`, `${command}${shownKey(keys[0]?.slice(prefix.length))} at ${node}: ${what}: ${reason}`)
  }

  /** Writes a line, unless one of its kind was written within the last second. */
  warn(kind: string, line: string): void {
    const now = this.now()
    const known = this.#kinds.get(kind)
    if (known !== undefined && now - known.since < INTERVAL) {
      known.left += 1
      return
    }
    const more = known?.left ? ` (${known.left} more since the last line)` : ''
    if (this.#kinds.size >= MOST) this.#kinds.clear()
    this.#kinds.set(kind, { since: now, left: 0 })
    this.logger(`redis-ratelimit: ${line}${more}`)
  }
}

// What is before the first colon or brace.
const BEGIN = /^([^:{]{1,40})[^:{]*[:{]/

// The beginning of a key. The rest may be an address or an API key, and a key without a colon may be one as a whole.
function shownKey(key = ''): string {
  const [, begin] = BEGIN.exec(key) ?? []
  return begin === undefined ? '' : ` '${begin}…'`
}
