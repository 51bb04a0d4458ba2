/** Calls that wait in the server, each on a connection of its own: the server reads nothing else from it meanwhile. */

import { Call } from '../call/call.js'
import type { Line } from './own.js'
import { failureOf, isMoving, late, NoReply, unconnected } from '../decide/failure.js'
import { Closed, type Unavailable } from '../errors.js'
import { pause, type Runtime } from '../runtime.js'
import type { Link } from './link.js'
import type { Settings } from '../call/settings.js'
import type { Node } from './nodes.js'
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
  node: Node
  signal: AbortSignal | undefined
}

/** Sends calls that wait. */
export class Waits {
  readonly #lines = new Set<Line>()
  // The attempts to connect that are under way.
  readonly #opening = new Set<AbortController>()
  #count = 0
  #isClosed = false

  constructor(private readonly link: Link, private readonly settings: Settings, private readonly runtime: Runtime) {}

  /** Sends a call, and returns its reply. Its connection is closed at the end, so that a call which gives up leaves its line. */
  async send(waiting: Waiting): Promise<unknown> {
    const { maxWaits } = this.settings
    if (this.#count >= maxWaits) throw new NoReply('crowded', `${maxWaits} calls wait already, the most by maxWaits`, false)
    this.#count += 1
    try {
      return await this.#send(waiting)
    } finally {
      this.#count -= 1
    }
  }

  async #send(waiting: Waiting): Promise<unknown> {
    const { call, node, signal } = waiting
    const until = this.runtime.now() + blocked(call)
    let address: string | undefined
    for (let redirections = 0; ; ) {
      const line = await this.#open(waiting, address)
      // A connection is an answer.
      node.answered()
      try {
        return await this.#exchange(line, waiting, address !== undefined)
      } catch (error) {
        const failed = failureOf(call.command, node.name, error)
        if (signal?.aborted || !isMoving(failed)) throw error
        if (failed.kind !== 'TRYAGAIN') redirections += 1
        if (redirections > REDIRECTIONS || this.runtime.now() >= until) throw error
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
    const ms = longest(call)
    const bounds = { signal, late: () => late(ms) }
    if (asks) await within(this.runtime, line.send(new Call('', ['ASKING'])), { ms: this.settings.connectTimeout, ...bounds })
    return within(this.runtime, line.send(call), { ms, ...bounds })
  }

  // Few connections are opened at a time, so that a burst does not overrun the server.
  async #open({ call, node, signal }: Waiting, address: string | undefined): Promise<Line> {
    const ms = Math.max(this.settings.connectTimeout, blocked(call))
    const { connections } = node
    if (!connections.take()) await connections.wait((turn) => within(this.runtime, turn, { ms, signal, late: () => unconnected(ms) }))
    try {
      // Meanwhile it may be known that nobody answers.
      if (this.#isClosed) throw new Closed()
      node.check(call, this.runtime.now())
      return await this.#opened(call, signal, address)
    } finally {
      connections.leave()
    }
  }

  async #opened(call: Call, signal: AbortSignal | undefined, address: string | undefined): Promise<Line> {
    const { connectTimeout: ms } = this.settings
    // A client may connect for ever to a server that is silent.
    const control = new AbortController()
    this.#opening.add(control)
    try {
      const opened = this.link.client.line(call, control.signal, address)
      const line = await within(this.runtime, opened, { ms, signal, late: () => unconnected(ms) })
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
  async #redirected({ kind, reason }: Unavailable, call: Call): Promise<string | undefined> {
    if (kind === 'ASK') return reason.slice(reason.lastIndexOf(' ') + 1)
    if (kind === 'TRYAGAIN') await pause(this.runtime, PAUSE)
    // The client of the cluster follows MOVED, and then knows the node.
    else {
      const ms = this.settings.timeout
      const bounds = { ms, late: () => late(ms) }
      const used = this.link.take()
      try {
        await within(this.runtime, used.client.send(probe(call)), bounds)
      } finally {
        this.link.leave(used)
      }
    }
    return undefined
  }
}

/** How long a call may wait in the server, in ms. `BLOCK 0` waits as long as the server lets it. */
export function blocked({ block }: Call): number {
  return block === undefined ? 0 : block || LONGEST_WAIT
}

/** How long its reply may take, in ms. */
export function longest(call: Call): number {
  return blocked(call) + GRACE
}

/** A call to the node of the same key, which changes nothing. */
export function probe(call: Call): Call {
  return new Call('', ['RL.INFO']).key(call.keys[0] ?? '')
}
