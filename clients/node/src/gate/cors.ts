/** What browsers need of a response for scripts of another origin: https://fetch.spec.whatwg.org/#http-cors-protocol */

import type { Fields } from '../decide/headers.js'
import type { HeaderStyle } from './stack.js'

/** The header with the names of those that scripts of another origin may read. */
export const EXPOSE = 'Access-Control-Expose-Headers'

const NAMES: Readonly<Record<HeaderStyle, readonly string[]>> = {
  draft: ['RateLimit-Policy', 'RateLimit', 'Retry-After'],
  legacy: ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset', 'Retry-After'],
  off: ['Retry-After'],
}

/** The header of a preflight. */
export const ASKS = 'access-control-request-method'

export function isPreflight(method: string | undefined, asks: unknown): boolean {
  return method === 'OPTIONS' && asks !== undefined
}

/** The headers of a response, and their names beside those that it exposes before. */
export function exposed(headers: Readonly<Fields>, style: HeaderStyle, before: unknown): Fields {
  const names = [before ?? [], NAMES[style]].flat().join(', ').split(/ *, */)
  return { ...headers, [EXPOSE]: [...new Set(names)].join(', ') }
}
