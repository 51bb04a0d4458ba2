/**
 * When a response of Node.js is over.
 *
 * @module
 */

import type { ServerResponse } from 'node:http'
import type { Pass } from './gate.js'

/** A response of `node:http`, `node:https` or `node:http2`. */
export type NodeResponse = Pick<ServerResponse, 'closed' | 'destroyed' | 'once'>

/**
 * Ends a pass when the response is finished, and when the client hangs up.
 *
 * @returns false if the client has gone already. Then the pass is cancelled, and the handler need not run
 */
export function endWith(response: NodeResponse, pass: Pass): boolean {
  if (response.closed || response.destroyed) {
    void pass.cancel()
    return false
  }
  response.once('close', () => void pass.end())
  return true
}
