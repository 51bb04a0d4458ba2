/**
 * The way to the server: a connection, a time-out, circuit breakers, counters and a log.
 *
 * @module
 */

import { setTimeout as pause } from 'node:timers/promises'
import type { Ticket } from '../decide/breaker.js'
import type { Call, Sender } from '../call/call.js'
import type { OwnClient, RedisClient } from './client.js'
import { noCounts } from '../decide/counters.js'
import { CallError, Closed, failure, isMoving, Unavailable } from '../errors.js'
import { Link } from './link.js'
import { Log } from '../decide/log.js'
import type { Settings } from '../call/settings.js'
import { Servers, type Server, type Shard } from '../decide/servers.js'
import { Blameless, blameless, crowded, late, leftAlone, text, unconnected, unsent } from '../decide/unanswered.js'
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

/** A server that a call goes to, and the ticket of its breaker. */
interface Asked {
  server: Server
  ticket: Ticket
}

/**
 * Sends calls on a connection of its own. They fail with {@link Unavailable}, with {@link CallError}, or with the reason of
 * a signal.
 */
export class Channel implements Sender {
  readonly counters = noCounts()
  readonly log: Log
  readonly #link: Link
  readonly #waits: Waits
  readonly #servers: Servers

  constructor(
    redis: RedisClient,
    private readonly settings: Settings,
  ) {
    this.log = new Log(settings.logger)
    this.#link = new Link(redis, settings)
    this.#waits = new Waits(this.#link, settings)
    this.#servers = new Servers(settings.breaker)
  }

  get keyPrefix(): string {
    return this.#link.keyPrefix
  }

  /** The client of its own, such as for the nodes of a cluster. */
  get client(): OwnClient {
    return this.#link.client
  }

  /** Sends a call, and returns its reply. */
  async send(call: Call, options: SendOptions = {}): Promise<unknown> {
    if (this.#link.isClosed) throw new Closed()
    options.signal?.throwIfAborted()
    try {
      return await this.#sent(call, options)
    } catch (error) {
      if (error instanceof CallError) this.counters.wrongCalls += 1
      if (error instanceof Unavailable) this.counters.unavailable += 1
      throw error
    }
  }

  /** Ends the calls that wait in the server, and refuses new ones. */
  endWaits(): void {
    this.#waits.close()
  }

  /** Ends all connections: at once those of calls that wait in the server, and the others when their calls are over. */
  close(): Promise<void> {
    this.endWaits()
    return this.#link.close()
  }

  #sent(call: Call, options: SendOptions): Promise<unknown> {
    const { primary, replicas } = this.#shard(call)
    if (call.block !== undefined) return this.#through(primary, call, options, () => this.#wait(primary, call, options))
    if (call.readonly && this.settings.readFromReplicas) return this.#read(primary, replicas, call, options)
    return this.#through(primary, call, options, () => this.#ask(primary, call, options))
  }

  #shard(call: Call): Shard {
    const { client } = this.#link
    const [key] = call.keys
    return this.#servers.of(key === undefined ? undefined : client.owner(key), () => client.owners)
  }

  // If a replica does not answer, the primary is asked: the call changes nothing.
  async #read(primary: Server, replicas: Server, call: Call, options: SendOptions): Promise<unknown> {
    if (!replicas.breaker?.isOpen(performance.now())) {
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
  async #through(server: Server, call: Call, options: SendOptions, ask: () => Promise<unknown>): Promise<unknown> {
    const ticket = server.breaker === undefined ? 0 : server.breaker.admits(performance.now())
    if (ticket === undefined) throw leftAlone(call, server.name)
    try {
      const reply = await ask()
      this.#answered(server)
      return reply
    } catch (error) {
      throw this.#failed({ server, ticket }, call, error, options.signal)
    }
  }

  async #ask(server: Server, call: Call, options: SendOptions): Promise<unknown> {
    if (this.#link.isReady) return this.#link.use((client) => this.#inTurn(client, server, call, options))
    return this.#link.use(async () => {
      await this.#connected(call, options.timeout ?? this.settings.timeout, options.signal)
      return this.#link.use((client) => this.#inTurn(client, server, call, options))
    })
  }

  // So the time-out begins when the call is sent, and not when it joins a queue.
  #inTurn(client: OwnClient, server: Server, call: Call, options: SendOptions): Promise<unknown> {
    const patience = QUEUE * (options.timeout ?? this.settings.timeout)
    return server.calls.run(
      () => {
        // Meanwhile it may be known that nobody answers.
        if (server.breaker?.isOpen(performance.now())) throw leftAlone(call, server.name)
        return this.#answer(client, server, call, options)
      },
      (turn) => within(turn, patience, options.signal, crowded(call, patience)),
    )
  }

  // While a slot moves to another node, calls with several keys fail for a moment. They were not executed.
  async #answer(client: OwnClient, server: Server, call: Call, options: SendOptions): Promise<unknown> {
    const { signal, timeout = this.settings.timeout } = options
    const until = performance.now() + timeout
    for (let delay = FIRST_PAUSE; ; delay = Math.min(2 * delay, LONGEST_PAUSE)) {
      try {
        return await this.#exchange(client, server, call, { signal, timeout })
      } catch (error) {
        const isOver = performance.now() + delay >= until || signal?.aborted
        if (isOver || !isMoving(failure(call.command, error))) throw error
        await pause(delay)
      }
    }
  }

  async #exchange(client: OwnClient, server: Server, call: Call, options: { signal: AbortSignal | undefined; timeout: number }): Promise<unknown> {
    const { signal, timeout } = options
    // Some clients may send a call later, so they learn when it is too late.
    const control = client.sendsLater ? new AbortController() : undefined
    const sent = client.send(call, control?.signal)
    try {
      return await within(sent, timeout, signal, late(call, timeout), server)
    } catch (error) {
      control?.abort()
      throw error
    }
  }

  async #connected(call: Call, timeout: number, signal: AbortSignal | undefined): Promise<void> {
    try {
      await this.#link.connected(timeout, signal, unconnected(call, Math.max(timeout, this.settings.connectTimeout)))
    } catch (error) {
      if (signal?.aborted || error instanceof Unavailable) throw error
      const failed = failure(call.command, error)
      throw failed instanceof CallError ? failed : unsent(call, failed.kind, text(failed), failed.cause)
    }
  }

  async #wait(server: Server, call: Call, { signal }: SendOptions): Promise<unknown> {
    if (!this.#link.isReady) await this.#connected(call, this.settings.connectTimeout, signal)
    try {
      return await this.#waits.send({ call, server, signal, opened: () => this.#answered(server) })
    } catch (error) {
      if (this.#waits.isClosed) throw new Closed({ cause: error })
      if (signal?.aborted || error instanceof Blameless) throw error
      const failed = failure(call.command, error)
      if (failed instanceof CallError || !(await this.#isThere(server, call))) throw failed
      this.#answered(server)
      throw blameless(failed)
    }
  }

  // A server may have no room for more connections, and answer all the same.
  #isThere(server: Server, call: Call): Promise<boolean> {
    return this.#ask(server, probe(call), {}).then(
      () => true,
      (error: unknown) => failure(call.command, error) instanceof CallError,
    )
  }

  #answered(server: Server): void {
    server.replies += 1
    const change = server.breaker?.succeeded()
    if (change === 'closed' && server.isPrimary) this.log.warn(`closed ${server.name}`, `${server.name} answers again`)
  }

  #failed(asked: Asked, call: Call, error: unknown, signal: AbortSignal | undefined): unknown {
    const { server, ticket } = asked
    if ((signal?.aborted && error === signal.reason) || error instanceof Closed) {
      server.breaker?.unknown(ticket)
      return error
    }
    const failed = error instanceof Blameless ? error : this.#reason(call, failure(call.command, error))
    if (failed instanceof CallError) this.#answered(server)
    else if (failed instanceof Blameless || isMoving(failed)) server.breaker?.unknown(ticket)
    else this.#lacking(asked, failed)
    return failed
  }

  // A client that is not connected does not say why. If the server rejected it, the call is wrong.
  #reason(call: Call, failed: Unavailable | CallError): Unavailable | CallError {
    const { lastError } = this.#link.client
    if (failed instanceof CallError || failed.maybeSent || lastError === undefined) return failed
    const why = failure(call.command, lastError)
    return why instanceof CallError ? why : unsent(call, failed.kind, text(why), why.cause)
  }

  #lacking({ server, ticket }: Asked, failed: Unavailable): void {
    const change = server.breaker?.failed(ticket, performance.now())
    if (!server.isPrimary) return
    if (change === 'opened') this.#opened(server, failed)
    if (change === 'reopened' || (failed.kind === 'connection' && this.#link.client.primaries > 1)) this.#link.renew()
  }

  #opened({ name }: Server, error: Unavailable): void {
    this.counters.breakerOpened += 1
    const { failures, cooldown } = this.settings.breaker ?? { failures: 0, cooldown: 0 }
    const why = `${failures} calls in a row had no answer; ${name} is not asked for ${cooldown} ms (${error.message})`
    this.log.warn(`opened ${name}`, why)
  }
}
