/** When a response of Node.js is over. */

import type { Socket } from 'node:net'
import type { Passage } from './passage.js'

/** A response of `node:http`, `node:https` or `node:http2`, or a socket. */
export interface NodeResponse {
  readonly destroyed: boolean
  /** Only a response of `node:http2` has it. Such a response has no `destroyed`, although its type does. */
  readonly stream?: { readonly destroyed: boolean } | undefined
  readonly socket?: Socket | null | undefined
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
  if (isGone(response)) {
    void passage.cancel()
    return false
  }
  response.once('close', () => void passage.end(response.headersSent ? response.statusCode : undefined))
  return true
}

/**
 * Lets a request enter a gate, wait for its turn, and end with its response.
 *
 * @returns nothing if the client has gone. Then the handler need not run
 */
export async function entered(response: NodeResponse, entering: Promise<Passage>): Promise<Passage | undefined> {
  const passage = await entering.catch((error: unknown) => {
    // A client that has gone has no address, so a rule's key may fail.
    if (isGone(response)) return undefined
    const socket = response.socket ?? (response as Partial<Socket>)
    if (!isReset(socket)) throw error
    // Nobody reads the socket of a handshake, so it would stay open.
    socket.destroy?.()
    return undefined
  })
  return passage !== undefined && endWith(response, passage) && (await passage.turn()) ? passage : undefined
}

function isGone({ destroyed, stream }: NodeResponse): boolean {
  return destroyed || stream?.destroyed === true
}

/** Whether the client has reset the connection. Node.js may not have read that yet. A UNIX socket has no addresses at all. */
function isReset({ localAddress, remoteAddress }: Partial<Socket>): boolean {
  return localAddress !== undefined && remoteAddress === undefined
}
