/**
 * When a response of Node.js is over.
 *
 * @module
 */

import type { Pass } from './gate.js'

/** A response of `node:http`, `node:https` or `node:http2`. */
export interface NodeResponse {
  readonly closed: boolean
  readonly destroyed: boolean
  /** Only a response of `node:http2` has it. Such a response has no `closed` and no `destroyed`, although its type does. */
  readonly stream?: { readonly destroyed: boolean } | undefined
  once(event: 'close', listener: () => void): unknown
}

/**
 * Ends a pass when the response is finished, and when the client hangs up.
 *
 * @returns false if the client has gone already. Then the pass is cancelled, and the handler need not run
 */
export function endWith(response: NodeResponse, pass: Pass): boolean {
  if (response.closed || response.destroyed || response.stream?.destroyed) {
    void pass.cancel()
    return false
  }
  response.once('close', () => void pass.end())
  return true
}
