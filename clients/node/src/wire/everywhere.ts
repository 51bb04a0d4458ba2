/** Which calls go to all primaries of a cluster. */

import type { Call } from '../call/call.js'

// Each primary of a cluster has policies of its own.
const EVERYWHERE = new Set(['RL.POLICY SET', 'RL.POLICY DEL', 'RL.POLICY LOAD'])

/** Whether all primaries of a cluster must get this call. */
export function goesEverywhere(call: Call): boolean {
  return call.keys.length === 0 && EVERYWHERE.has(call.command)
}

/** Sends a call to all nodes, and returns the first one's reply. */
export async function everywhere<N>(nodes: readonly N[], send: (node: N) => unknown): Promise<unknown> {
  const [first] = await Promise.all(nodes.map(send))
  return first
}
