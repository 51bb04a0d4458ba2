/**
 * Calls that wait in the server, each on a connection of its own: the server reads nothing else from it meanwhile.
 *
 * @module
 */

import { setTimeout as pause } from 'node:timers/promises'
import { Call } from '../call/call.js'
import type { Line } from './client.js'
import { Closed, failure, isMoving, type Unavailable } from '../errors.js'
import type { Link } from './link.js'
import type { Settings } from '../call/settings.js'
import type { Server } from '../decide/servers.js'
import { late, leftAlone, unconnected } from '../decide/unanswered.js'
import { within } from './within.js'

// The reply to BLOCK may come so much later than its timeout.
const GRACE = 1000
// The server's own bound of a wait, unless it is set to another.
const LONGEST_WAIT = 60_000
// How often a waiting call looks for its node, while a slot moves.
const REDIRECTIONS = 5
// Before a call is sent again whose keys are moving.
const PAUSE = 50

/** A call that waits, and the server of its key. */
export interface Waiting {
  call: Call
  server: Server
  signal: AbortSignal | undefined
  /** Is told when the connection is there, which is an answer. */
  opened(): void
}

/** Sends calls that wait. */
export class Waits {
  readonly #lines = new Set<Line>()
  // The attempts to connect that are under way.
  readonly #opening = new Set<AbortController>()
  #isClosed = false

  constructor(
    private readonly link: Link,
    private readonly settings: Settings,
  ) {}

  /** Sends a call, and returns its reply. Its connection is closed at the end, so that a call which gives up leaves its line. */
  async send(waiting: Waiting): Promise<unknown> {
    const { call, signal } = waiting
    const until = performance.now() + blocked(call)
    let address: string | undefined
    for (let redirections = 0; ; ) {
      const line = await this.#open(waiting, address)
      waiting.opened()
      try {
        return await this.#exchange(line, waiting, address !== undefined)
      } catch (error) {
        const failed = failure(call.command, error)
        if (signal?.aborted || !isMoving(failed)) throw error
        if (failed.kind !== 'TRYAGAIN') redirections += 1
        if (redirections > REDIRECTIONS || performance.now() >= until) throw error
        address = await this.#redirected(failed, call)
      } finally {
        this.#lines.delete(line)
        line.close()
      }
    }
  }

  /** Whether calls that wait are refused. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Ends all of them, also those whose connection is not yet open. */
  close(): void {
    this.#isClosed = true
    for (const control of this.#opening) control.abort()
    for (const line of this.#lines) line.close()
  }

  async #exchange(line: Line, { call, signal }: Waiting, asks: boolean): Promise<unknown> {
    const patience = blocked(call) + GRACE
    if (asks) await within(line.send(new Call('', ['ASKING'])), this.settings.connectTimeout, signal, late(call, patience))
    return within(line.send(call), patience, signal, late(call, patience))
  }

  // Few connections are opened at a time, so that a burst does not overrun the server.
  #open({ call, server, signal }: Waiting, address: string | undefined): Promise<Line> {
    const { connectTimeout } = this.settings
    const patience = Math.max(connectTimeout, blocked(call))
    return server.connections.run(
      () => {
        // Meanwhile it may be known that nobody answers.
        if (this.#isClosed) throw new Closed()
        if (server.breaker?.isOpen(performance.now())) throw leftAlone(call, server.name)
        return this.#opened(call, signal, address)
      },
      (turn) => within(turn, patience, signal, unconnected(call, patience)),
    )
  }

  async #opened(call: Call, signal: AbortSignal | undefined, address: string | undefined): Promise<Line> {
    const { connectTimeout } = this.settings
    // A client may connect for ever to a server that is silent.
    const control = new AbortController()
    this.#opening.add(control)
    try {
      const opened = this.link.client.line(call, control.signal, address)
      const line = await within(opened, connectTimeout, signal, unconnected(call, connectTimeout))
      // It may have opened in the same turn as the limiter was closed.
      if (this.#isClosed) throw new Closed()
      this.#lines.add(line)
      return line
    } catch (error) {
      control.abort()
      throw error
    } finally {
      this.#opening.delete(control)
    }
  }

  /** The node that has the keys for the moment, or `undefined` if that is again the one that the client knows. */
  async #redirected({ kind, message }: Unavailable, call: Call): Promise<string | undefined> {
    if (kind === 'ASK') return message.slice(message.lastIndexOf(' ') + 1)
    if (kind === 'TRYAGAIN') await pause(PAUSE)
    // The client of the cluster follows MOVED, and then knows the node.
    else await this.link.use((client) => within(client.send(probe(call)), this.settings.timeout, undefined, late(call, 0)))
    return undefined
  }
}

/** How long a call may wait in the server, in ms. `BLOCK 0` waits as long as the server lets it. */
export function blocked({ block }: Call): number {
  return block === undefined ? 0 : block || LONGEST_WAIT
}

/** A call to the node of the same key, which changes nothing. */
export function probe(call: Call): Call {
  return new Call('', ['RL.INFO']).key(call.keys[0] ?? '')
}
