/** Connections of the package's own. */

import type { Call, Sender } from '../call/call.js'
import type { Runtime } from '../runtime.js'

/** What a connection of the package's own is made with. Times are in ms. */
export interface OwnSettings {
  timeout: number
  connectTimeout: number
  readFromReplicas: boolean
  runtime: Runtime
}

/** The name of a cluster, for calls without a key. */
export const CLUSTER = 'the cluster'

/** A connection for one call that waits. */
export interface Line {
  send(call: Call): Promise<unknown>
  close(): void
}

/** A connection that belongs to the package. */
export interface OwnClient extends Sender {
  /** Resolves when it is connected. Rejects if the first attempt failed; more follow in the background. */
  readonly ready: Promise<void>
  /** Why it is not connected, if it is not. */
  readonly lastError: unknown
  /** Whether a call may be sent long after it was asked for. */
  readonly sendsLater: boolean
  /** Sends a call. After `signal` it is no longer sent. */
  send(call: Call, signal?: AbortSignal): Promise<unknown>
  /**
   * Opens a further connection: to the node of the call, or to the address that the server named.
   *
   * @param signal - ends the attempt
   */
  line(call: Call, signal: AbortSignal, address?: string): Promise<Line>
  readonly isCluster: boolean
  /** The server, as errors and the log name it. */
  readonly name: string
  /** One of each primary: the name of the node that has this key. `undefined` unless it is a cluster. */
  owner(key: string): string | undefined
  /** The number of primaries, 1 unless it is a cluster. */
  readonly primaries: number
  /** The names of the primaries, as far as they are known. None unless it is a cluster. */
  readonly owners: readonly string[]
  close(): void
}
