/** Connections of the package's own, and what they have in common. A file for each library has the rest. */

import { Call, type Sender } from '../call/call.js'
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

/** Opens a line. `signal` ends the attempt. */
export async function opened(line: Line & { connect(): Promise<unknown> }, signal: AbortSignal): Promise<Line> {
  signal.addEventListener('abort', () => line.close(), { once: true })
  try {
    await line.connect()
    // Without a handshake it is connected before the server has said a word. An error is an answer.
    await line.send(new Call('', ['PING'])).catch(() => undefined)
  } catch (error) {
    line.close()
    throw error
  }
  return line
}

/** A connection that ends and is made again. */
export class Coming {
  /** Why it is not there, if it is not. */
  lastError: unknown
  #isUp: boolean
  #isEnding = false
  #again: { promise: Promise<void>; resolve(): void; reject(error: unknown): void } | undefined

  constructor(isUp = false) {
    this.#isUp = isUp
  }

  /** Settles with the first attempt after a loss. `undefined` if it is there, and if an attempt failed since it was. */
  get again(): Promise<void> | undefined {
    return this.#again?.promise
  }

  /** It is there. */
  up(): void {
    this.lastError = undefined
    this.#isUp = true
    this.#isEnding = false
    this.#again?.resolve()
    this.#again = undefined
  }

  /** It takes no more calls, and its client will say that it is down. */
  ending(): void {
    if (!this.#isUp) return
    this.#isUp = false
    this.#isEnding = true
    this.#again = deferred()
  }

  /** It was lost, or an attempt failed. */
  down(error: unknown): void {
    this.lastError = error
    this.ending()
    if (!this.#isEnding) {
      this.#again?.reject(error)
      this.#again = undefined
    }
    this.#isEnding = false
  }
}

function deferred(): { promise: Promise<void>; resolve(): void; reject(error: unknown): void } {
  let [resolve, reject] = [() => {}, (_: unknown) => {}]
  const promise = quiet(new Promise<void>((...both) => ([resolve, reject] = both)))
  return { promise, resolve, reject }
}

/** A promise whose failure need not be heard. */
export function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}

/** A connection that belongs to the package. */
export interface OwnClient extends Sender {
  /** Resolves when it is connected. Rejects if the first attempt failed; more follow in the background. */
  readonly ready: Promise<void>
  /** Why it is not connected, if it is not. */
  readonly lastError: unknown
  /** Settles when a lost connection is made again, or when that fails. `undefined` if there is nothing to wait for. */
  again(key: string | undefined): Promise<void> | undefined
  /**
   * Closes the connection to the node of a key, and opens it anew, because of this error. Calls under way there fail. Returns
   * false if there is none that is open.
   */
  drop(key: string | undefined, error: Error): boolean
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
  /** Whether another server may become the primary of a key. Then a new connection finds it, and this one may not. */
  readonly moves: boolean
  /** Resolves when that is known to have happened. Not all clients know. */
  readonly moved?: Promise<void>
  /** The names of the primaries, as far as they are known. None unless it is a cluster. */
  readonly owners: readonly string[]
  close(): void
}

/** What all of them do alike. For a cluster the getters are others. */
export abstract class Own implements OwnClient {
  abstract readonly ready: Promise<void>
  readonly isCluster: boolean = false
  readonly sendsLater: boolean = false
  protected readonly coming = new Coming()

  constructor(readonly name: string, private readonly sender: Pick<OwnClient, 'keyPrefix' | 'send'>, protected readonly settings: OwnSettings) {}

  get keyPrefix(): string {
    return this.sender.keyPrefix
  }

  get lastError(): unknown {
    return this.coming.lastError
  }

  get primaries(): number {
    return 1
  }

  get owners(): readonly string[] {
    return []
  }

  get moves(): boolean {
    return this.primaries > 1
  }

  owner(_: string): string | undefined {
    return undefined
  }

  again(_: string | undefined): Promise<void> | undefined {
    return this.coming.again
  }

  send(call: Call, signal?: AbortSignal): Promise<unknown> {
    return this.sender.send(call, signal)
  }

  abstract drop(key: string | undefined, error: Error): boolean
  abstract line(call: Call, signal: AbortSignal, address?: string): Promise<Line>
  abstract close(): void
}
