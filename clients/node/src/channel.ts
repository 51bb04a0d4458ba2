/**
 * The way to the server: a connection, a time-out, a circuit breaker, counters and a log.
 *
 * @module
 */

import { Breaker } from './breaker.js'
import { Call, type Sender } from './call.js'
import type { OwnClient, RedisClient } from './clients/client.js'
import { noCounts } from './counters.js'
import { CallError, failure, RateLimitError, Unavailable } from './errors.js'
import { Link } from './link.js'
import { Log } from './log.js'
import type { Settings } from './options.js'
import { within, type Late } from './within.js'

/** What a call may be told. */
export interface SendOptions {
  /** Gives the call up. */
  signal?: AbortSignal | undefined
  /** Another time-out than the limiter's, in ms. */
  timeout?: number | undefined
}

// The reply to BLOCK may come so much later than its timeout.
const GRACE = 1000
// The server's own bound of a wait, unless it is set to another.
const LONGEST_WAIT = 60_000
// How often a waiting call looks for its node, while a slot moves.
const REDIRECTIONS = 3
// How long replicas are left alone after one did not answer.
const REST = 1000

/**
 * Sends calls on a connection of its own. They fail with {@link Unavailable}, with {@link CallError}, or with the reason of
 * a signal.
 */
export class Channel implements Sender {
  readonly counters = noCounts()
  readonly log: Log
  readonly #link: Link
  readonly #breaker: Breaker | undefined
  #replicasRestUntil = 0

  constructor(
    redis: RedisClient,
    private readonly settings: Settings,
  ) {
    const { breaker, logger } = settings
    this.log = new Log(logger)
    this.#link = new Link(redis, settings)
    this.#breaker = breaker === null ? undefined : new Breaker(breaker.failures, breaker.cooldown)
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
    if (this.#link.isClosed) throw new RateLimitError('the limiter is closed')
    options.signal?.throwIfAborted()
    if (this.#breaker?.admits(performance.now()) === false) {
      this.counters.unavailable += 1
      throw new Unavailable(call.command, 'breaker', 'the server did not answer before, and is not asked', false)
    }
    try {
      const reply = await this.#sent(call, options)
      this.#answered()
      return reply
    } catch (error) {
      throw this.#failed(call, error, options.signal)
    }
  }

  /** Ends all connections. Calls that are under way fail. */
  close(): void {
    this.#link.close()
  }

  #sent(call: Call, options: SendOptions): Promise<unknown> {
    if (call.block !== undefined) return this.#wait(call, call.block, options)
    return call.readonly && this.settings.readFromReplicas ? this.#read(call, options) : this.#ask(call, options)
  }

  async #ask(call: Call, { signal, timeout = this.settings.timeout }: SendOptions): Promise<unknown> {
    if (!this.#link.isReady) await this.#connected(call, timeout, signal)
    const { client } = this.#link
    // Some clients may send a call later, so they learn when it is too late.
    const control = client.sendsLater ? new AbortController() : undefined
    const sent = client.send(call, control?.signal)
    try {
      return await within(sent, timeout, signal, late(call, timeout))
    } catch (error) {
      control?.abort()
      throw error
    }
  }

  // If a replica does not answer, the primary is asked: the call changes nothing.
  async #read(call: Call, options: SendOptions): Promise<unknown> {
    if (performance.now() < this.#replicasRestUntil) return this.#ask(call.atPrimary(), options)
    try {
      return await this.#ask(call, options)
    } catch (error) {
      if (options.signal?.aborted || failure(call.command, error) instanceof CallError) throw error
      this.#replicasRestUntil = performance.now() + REST
      return this.#ask(call.atPrimary(), options)
    }
  }

  async #connected(call: Call, timeout: number, signal: AbortSignal | undefined): Promise<void> {
    try {
      await this.#link.connected(timeout, signal, unconnected(call, Math.max(timeout, this.settings.connectTimeout)))
    } catch (error) {
      if (signal?.aborted || error instanceof Unavailable) throw error
      const failed = failure(call.command, error)
      throw failed instanceof CallError ? failed : unsent(call, failed.kind, text(failed), error)
    }
  }

  // On a connection of its own, for the server reads nothing else from it. Closed at the end, so that the call leaves its
  // line if nobody listens any more.
  async #wait(call: Call, block: number, { signal }: SendOptions): Promise<unknown> {
    const { connectTimeout } = this.settings
    if (!this.#link.isReady) await this.#connected(call, connectTimeout, signal)
    const { client } = this.#link
    const patience = (block === 0 ? LONGEST_WAIT : block) + GRACE
    for (let attempt = 1; ; attempt += 1) {
      const opened = client.line(call)
      try {
        const line = await within(opened, connectTimeout, signal, unconnected(call, connectTimeout))
        return await within(line.send(call), patience, signal, late(call, patience))
      } catch (error) {
        if (attempt >= REDIRECTIONS || !isMoved(error)) throw error
        // The client of the cluster follows this one, and then knows the node.
        await client.send(new Call('', ['RL.INFO']).key(call.keys[0] ?? ''))
      } finally {
        opened.then(
          (line) => line.close(),
          () => undefined,
        )
      }
    }
  }

  #answered(): void {
    const change = this.#breaker?.succeeded()
    if (change === 'closed') this.log.warn('closed', 'the server answers again')
  }

  #failed(call: Call, error: unknown, signal: AbortSignal | undefined): unknown {
    if (signal?.aborted && error === signal.reason) {
      this.#breaker?.unknown()
      return error
    }
    const failed = this.#reason(call, failure(call.command, error))
    if (failed instanceof CallError) {
      this.counters.wrongCalls += 1
      this.#answered()
      return failed
    }
    this.counters.unavailable += 1
    if (failed.kind === 'busy') this.#breaker?.unknown()
    else this.#lacking(failed)
    return failed
  }

  // A client that is not connected does not say why. If the server rejected it, the call is wrong.
  #reason(call: Call, failed: Unavailable | CallError): Unavailable | CallError {
    const { lastError } = this.#link.client
    if (failed instanceof CallError || failed.maybeSent || failed.kind === 'breaker' || lastError === undefined) return failed
    const why = failure(call.command, lastError)
    return why instanceof CallError ? why : unsent(call, failed.kind, text(why), lastError)
  }

  #lacking(failed: Unavailable): void {
    const change = this.#breaker?.failed(performance.now())
    if (change === 'opened') this.#opened(failed)
    if (change === 'reopened' || (failed.kind === 'connection' && this.#link.client.primaries > 1)) this.#link.renew()
  }

  #opened(error: Unavailable): void {
    this.counters.breakerOpened += 1
    const { failures, cooldown } = this.settings.breaker ?? { failures: 0, cooldown: 0 }
    const why = `${failures} calls in a row had no answer; the server is not asked for ${cooldown} ms (${error.message})`
    this.log.warn('opened', why)
  }
}

function late(call: Call, ms: number): Late {
  return (isBusy) => {
    const text = `no answer within ${ms} ms${isBusy ? ', in which this process was busy' : ''}`
    return new Unavailable(call.command, isBusy ? 'busy' : 'timeout', text, true)
  }
}

function unconnected(call: Call, ms: number): Late {
  return (isBusy) => unsent(call, isBusy ? 'busy' : 'timeout', `no connection within ${ms} ms`)
}

function unsent(call: Call, kind: string, text: string, cause?: unknown): Unavailable {
  return new Unavailable(call.command, kind, text, false, { cause })
}

// Without the command, which stands before it.
function text(error: Unavailable): string {
  return error.message.slice(error.command.length + 2)
}

function isMoved(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('MOVED ')
}
