/** The way to the server: a connection, time-outs, and queues. {@link Core} and {@link Node} know what the lack of a reply means. */

import type { Call, Sender } from '../call/call.js'
import type { Settings } from '../call/settings.js'
import type { Core } from '../decide/core.js'
import { counts, crowded, explained, failureOf, gaveUp, isElsewhere, isLost, isMisconfigured, isMoving, isUnable, isUnsent, late, Silence, silent, unconnected, Uncounted, unsent } from '../decide/failure.js'
import { CallError, Closed, Unavailable } from '../errors.js'
import { pause, type Runtime } from '../runtime.js'
import { Link } from './link.js'
import type { OwnClient } from './own.js'
import { Nodes, type Node, type Shard } from './nodes.js'
import { probe, Waits } from './waits.js'
import { within } from './within.js'

/** What a call may be told. */
export interface SendOptions {
  /** Gives the call up. */
  signal?: AbortSignal | undefined
  /** Another time-out than the limiter's, in ms. */
  timeout?: number | undefined
}

// Before a call is sent again whose keys are moving, in ms. It doubles up to LONGEST_PAUSE.
const FIRST_PAUSE = 10
const LONGEST_PAUSE = 100
// How many time-outs a call waits until it is sent, if there are too many at once.
const QUEUE = 10

/**
 * Sends calls on a connection of its own. They fail with {@link Unavailable}, with {@link CallError}, or with the reason of
 * a signal.
 */
export class Channel implements Sender {
  readonly #link: Link
  readonly #waits: Waits
  readonly #nodes: Nodes
  // Since when calls wait for an attempt to connect.
  readonly #waitedFor = new WeakMap<Promise<void>, number>()

  /** @param connect - opens a connection */
  constructor(connect: () => OwnClient, readonly settings: Settings, readonly core: Core, readonly runtime: Runtime) {
    this.#link = new Link(connect, settings.connectTimeout, runtime)
    this.#waits = new Waits(this.#link, settings, runtime)
    this.#nodes = new Nodes(settings.breaker, core)
  }

  get keyPrefix(): string {
    return this.#link.keyPrefix
  }

  /** The client of its own, such as for the nodes of a cluster. */
  get client(): OwnClient {
    return this.#link.client
  }

  /** The name of the server that has a key, such as for the log. */
  nodeOf(key: string | undefined): string {
    return this.#shard(key).primary.name
  }

  /** Waits for the first attempt to connect. */
  connected(timeout: number): Promise<void> {
    return this.#link.connected(timeout, undefined)
  }

  /** Sends a call, and returns its reply. */
  async send(call: Call, options: SendOptions = {}): Promise<unknown> {
    if (this.#link.isClosed) throw new Closed()
    options.signal?.throwIfAborted()
    try {
      return await this.#sent(call, options)
    } catch (error) {
      this.core.failed(error)
      throw error
    }
  }

  /** Ends the calls that wait in the server, and refuses new ones. */
  endWaits(): void {
    this.#waits.close()
  }

  /** Ends all connections. No call may be under way. */
  close(): void {
    this.#link.close()
  }

  #sent(call: Call, options: SendOptions): Promise<unknown> {
    const { primary, replicas } = this.#shard(call.keys[0])
    if (call.block !== undefined) return this.#through(primary, call, options, () => this.#wait(primary, call, options))
    if (call.readonly && this.settings.readFromReplicas) return this.#read(primary, replicas, call, options)
    return this.#through(primary, call, options, () => this.#ask(primary, call, options))
  }

  #shard(key: string | undefined): Shard {
    const { client } = this.#link
    return this.#nodes.of(key === undefined ? undefined : client.owner(key), client)
  }

  // If a replica does not answer, the primary is asked: the call changes nothing.
  async #read(primary: Node, replicas: Node, call: Call, options: SendOptions): Promise<unknown> {
    if (!replicas.isOpen(this.runtime.now())) {
      try {
        return await this.#through(replicas, call, options, () => this.#ask(replicas, call, options))
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error
      }
    }
    const asked = call.atPrimary()
    return this.#through(primary, asked, options, () => this.#ask(primary, asked, options))
  }

  /** Asks a server if its breaker lets it, and notes whether it answered. */
  async #through(node: Node, call: Call, { signal }: SendOptions, ask: () => Promise<unknown>): Promise<unknown> {
    const ticket = node.admit(call, this.runtime.now())
    try {
      const reply = await ask()
      node.answered()
      return reply
    } catch (error) {
      if (gaveUp(error, signal)) {
        node.unknown(ticket)
        throw error
      }
      const { moves, lastError } = this.#link.client
      const failed = explained(call.command, node.name, error, lastError)
      const change = node.failed(ticket, failed, this.runtime.now(), error instanceof Silence || isLost(failed) || isUnable(failed))
      if (node.isPrimary && (change === 'reopened' || isElsewhere(failed, moves))) this.#link.renew()
      throw failed
    }
  }

  async #ask(node: Node, call: Call, options: SendOptions): Promise<unknown> {
    if (!this.#link.isReady) await this.#link.connected(options.timeout ?? this.settings.timeout, options.signal)
    const used = this.#link.take()
    try {
      return await this.#askOn(used.client, node, call, options)
    } finally {
      this.#link.leave(used)
    }
  }

  // A lost connection is usually there again in a moment. That it is not yet is no failure.
  async #askOn(client: OwnClient, node: Node, call: Call, { signal, timeout: ms = this.settings.timeout }: SendOptions): Promise<unknown> {
    const until = this.runtime.now() + ms
    let left = ms
    for (;;) {
      // After that of a cluster comes that of its node.
      for (let ready = again(client, node, call); ready !== undefined; ready = again(client, node, call)) {
        await this.#again(ready, node, call, until - this.runtime.now(), ms, signal)
        left = Math.max(1, until - this.runtime.now())
      }
      // The time-out begins when the call is sent, and not when it joins a queue.
      const { calls } = node
      const longest = QUEUE * left
      if (!calls.take()) await calls.wait((turn) => within(this.runtime, turn, { ms: longest, signal, late: crowded }))
      try {
        // Meanwhile it may be known that nobody answers.
        node.check(call, this.runtime.now())
        return await this.#answer(client, node, call, left, signal)
      } catch (error) {
        const isOver = again(client, node, call) === undefined || this.runtime.now() >= until || gaveUp(error, signal)
        if (isOver || !isUnsent(failureOf(call.command, node.name, error))) throw error
      } finally {
        calls.leave()
      }
    }
  }

  // That a connection cannot be made is a failure, and that it takes longer than the time for connecting: a server or a proxy
  // may accept a connection, and be silent.
  async #again(ready: Promise<void>, node: Node, call: Call, left: number, ms: number, signal: AbortSignal | undefined): Promise<void> {
    const since = this.#waitedFor.get(ready) ?? this.runtime.now()
    this.#waitedFor.set(ready, since)
    const late = () => {
      const isSlow = this.runtime.now() - since >= this.settings.connectTimeout
      return isSlow ? unconnected(ms) : new Uncounted(call.command, 'connection', unconnected(ms).message, node.name, false)
    }
    try {
      await within(this.runtime, ready, { ms: left, signal, late })
    } catch (error) {
      throw signal?.aborted ? error : unsent(error)
    }
  }

  // While a slot moves to another node, calls with several keys fail for a moment. They were not executed.
  async #answer(client: OwnClient, node: Node, call: Call, ms: number, signal: AbortSignal | undefined): Promise<unknown> {
    const until = this.runtime.now() + ms
    const late = () => this.#late(client, node, call, ms)
    for (let delay = FIRST_PAUSE; ; delay = Math.min(2 * delay, LONGEST_PAUSE)) {
      // Some clients may send a call later, so they learn when it is too late.
      const control = client.sendsLater ? new AbortController() : undefined
      try {
        return await within(this.runtime, client.send(call, control?.signal), { ms, signal, late, heard: node })
      } catch (error) {
        control?.abort()
        const isOver = !client.isCluster || this.runtime.now() + delay >= until || signal?.aborted
        if (isOver || !isMoving(failureOf(call.command, node.name, error))) throw error
        await pause(this.runtime, delay)
      }
    }
  }

  // A connection that is silent may stay so for ever. So it is closed with the first call that has no reply in time.
  #late(client: OwnClient, node: Node, call: Call, ms: number): Error {
    const [key] = call.keys
    if (!node.isPrimary || !client.drop(key, late(ms))) return late(ms)
    // If the next one is not there in time either, the server is to blame at once.
    const ready = client.again(key)
    if (ready !== undefined) this.#waitedFor.set(ready, -Infinity)
    return silent(ms)
  }

  async #wait(node: Node, call: Call, { signal }: SendOptions): Promise<unknown> {
    if (!this.#link.isReady) await this.#link.connected(this.settings.connectTimeout, signal)
    try {
      return await this.#waits.send({ call, node, signal })
    } catch (error) {
      if (this.#waits.isClosed) throw new Closed({ cause: error })
      if (signal?.aborted) throw error
      const failed = failureOf(call.command, node.name, error)
      if (failed instanceof CallError || !counts(failed) || !(await this.#isThere(node, call))) throw failed
      node.answered()
      throw new Uncounted(call.command, failed.kind, failed.reason, node.name, failed.maybeSent, { cause: failed.cause })
    }
  }

  // A server may have no room for more connections, and answer all the same.
  #isThere(node: Node, call: Call): Promise<boolean> {
    return this.#ask(node, probe(call), {}).then(
      () => true,
      (error: unknown) => {
        const failed = failureOf(call.command, node.name, error)
        return failed instanceof CallError || isMisconfigured(failed)
      },
    )
  }
}

/** Settles when a lost connection is there again, if this call needs it. */
function again(client: OwnClient, node: Node, call: Call): Promise<void> | undefined {
  return node.isPrimary ? client.again(call.keys[0]) : undefined
}
