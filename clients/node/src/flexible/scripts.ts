/** The scripts of the backend for rate-limiter-flexible. They find a window of the module or a string of the library. */

import { createHash } from 'node:crypto'
import type { RawSender } from './send.js'

/**
 * The limit of every window. The library counts on above its own limit and compares itself, so windows refuse nothing.
 * Not 2^53 - 1: ioredis adds up the digits of a reply in floating point, and loses the last one so close to 2^53.
 */
export const LARGEST_COUNT = '9000000000000000'

// Returns the count and the ms left of a window, or nothing if the key is no window, or holds other limits too: then the
// library's commands reply WRONGTYPE. The stored length is used, because another one would move the window's end.
const WINDOW = `
local function window()
  if redis.call('TYPE', KEYS[1]).ok ~= 'ratelimit' then return end
  local info, fields = {}, redis.call('RL.INFO', KEYS[1])
  for i = 1, #fields, 2 do info[fields[i]] = fields[i + 1] end
  if info.limiter ~= 'FIXEDWINDOW' then return end
  local five = redis.call('RL.PEEK', KEYS[1], 'FIXEDWINDOW', '${LARGEST_COUNT}', info.length_ms .. 'ms', 'COST', '0')
  return five[2] - five[3], five[5]
end
`

/** Replies count and ms left: of a window with a 1 behind them, of a string as `GET` and `PTTL` do. */
export const FROM_STRING = `${WINDOW}
local count, left = window()
if count then return {count, left, 1} end
return {redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1])}
`

/** What the library does for a duration of less than a second. */
export const NEVER_ENDS = `return {redis.call('INCRBY', KEYS[1], ARGV[1]), redis.call('PTTL', KEYS[1])}`

const TO_STRING = `${WINDOW}
do
  local count, left = window()
  if count and count > 0 then
    redis.call('SET', KEYS[1], string.format('%.0f', count), 'PX', left)
  elseif count then
    redis.call('DEL', KEYS[1])
  end
end
`

/** `lua`, after a window has become a string with the same count and end. */
export function afterWindow(lua: string): string {
  // A line such as `#!lua flags=...` stays first.
  const [line = ''] = /^#!.*\n/.exec(lua) ?? []
  return line + TO_STRING + lua.slice(line.length)
}

/** A script for one key. It is sent by its hash, and as a whole if the server does not have it. */
export class Script {
  readonly #lua: string
  readonly #hash: string

  constructor(lua: string) {
    this.#lua = lua
    this.#hash = createHash('sha1').update(lua).digest('hex')
  }

  async run(send: RawSender, key: string, words: string[]): Promise<unknown[]> {
    try {
      return await send(key, 'EVALSHA', [this.#hash, '1'], words)
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
      return await send(key, 'EVAL', [this.#lua, '1'], words)
    }
  }
}
