/** When a response of Node.js is over. */

import type { Passage } from './passage.js'

/** A response of `node:http`, `node:https` or `node:http2`. */
export interface NodeResponse {
  readonly destroyed: boolean
  /** Only a response of `node:http2` has it. Such a response has no `destroyed`, although its type does. */
  readonly stream?: { readonly destroyed: boolean } | undefined
  /** A socket has no status. */
  readonly headersSent?: boolean
  readonly statusCode?: number
  once(event: 'close', listener: () => void): unknown
}

/**
 * Ends what a request has taken when the response is finished, and when the client hangs up.
 *
 * @returns false if the client has gone already. Then the passage is cancelled, and the handler need not run
 */
export function endWith(response: NodeResponse, passage: Passage): boolean {
  if (response.destroyed || response.stream?.destroyed) {
    void passage.cancel()
    return false
  }
  response.once('close', () => void passage.end(response.headersSent ? response.statusCode : undefined))
  return true
}
