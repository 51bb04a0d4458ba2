/**
 * The way to the server: a connection, a time-out, a circuit breaker, counters and a log.
 *
 * @module
 */

import { Breaker } from './breaker.js'
import { Call, type Sender } from './call.js'
import { ownClient, type OwnClient, type RedisClient } from './clients/client.js'
import { noCounts } from './counters.js'
import { CallError, failure, RateLimitError, Unavailable } from './errors.js'
import { Log } from './log.js'
import type { Settings } from './options.js'
import { within } from './within.js'

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
// The shortest time between two attempts to replace the connection.
const RENEWAL = 1000

/**
 * Sends calls on a connection of its own. They fail with {@link Unavailable}, with {@link CallError}, or with the reason of
 * a signal.
 */
export class Channel implements Sender {
  readonly counters = noCounts()
  readonly log: Log
  readonly keyPrefix: string
  readonly #breaker: Breaker | undefined
  readonly #connectBy: number
  #client: OwnClient
  #isReady = false
  #next: OwnClient | undefined
  #renewed = -RENEWAL
  #isClosed = false

  constructor(
    private readonly redis: RedisClient,
    private readonly settings: Settings,
  ) {
    const { breaker, connectTimeout } = settings
    this.log = new Log(settings.logger)
    this.#breaker = breaker === null ? undefined : new Breaker(breaker.failures, breaker.cooldown)
    this.#connectBy = performance.now() + connectTimeout
    this.#client = ownClient(redis, settings)
    this.keyPrefix = this.#client.keyPrefix
    this.#watch(this.#client)
  }

  /** Sends a call, and returns its reply. */
  async send(call: Call, options: SendOptions = {}): Promise<unknown> {
    if (this.#isClosed) throw new RateLimitError('the limiter is closed')
    options.signal?.throwIfAborted()
    if (this.#breaker?.admits(performance.now()) === false) {
      this.counters.unavailable += 1
      throw new Unavailable(call.command, 'breaker', 'the server did not answer before, and is not asked', false)
    }
    try {
      const reply = await (call.block === undefined ? this.#ask(call, options) : this.#wait(call, call.block, options))
      this.#answered()
      return reply
    } catch (error) {
      throw this.#failed(call, error, options.signal)
    }
  }

  /** The client of its own, such as for the nodes of a cluster. */
  get client(): OwnClient {
    return this.#client
  }

  /** Ends all connections. Calls that are under way fail. */
  close(): void {
    this.#isClosed = true
    this.#client.close()
    this.#next?.close()
  }

  async #ask(call: Call, { signal, timeout = this.settings.timeout }: SendOptions): Promise<unknown> {
    if (!this.#isReady) await this.#connected(call, timeout, signal)
    // Some clients may send a call later, so they learn when it is too late.
    const control = this.#client.sendsLater ? new AbortController() : undefined
    const sent = this.#client.send(call, control?.signal)
    try {
      return await within(sent, timeout, signal, () => late(call, timeout))
    } catch (error) {
      control?.abort()
      throw error
    }
  }

  // Only the first connection is waited for.
  async #connected(call: Call, timeout: number, signal: AbortSignal | undefined): Promise<void> {
    const ms = Math.max(timeout, this.#connectBy - performance.now())
    const unsent = () => new Unavailable(call.command, 'timeout', `no connection within ${Math.ceil(ms)} ms`, false)
    try {
      await within(this.#client.ready, ms, signal, unsent)
    } catch (error) {
      if (signal?.aborted || error instanceof Unavailable) throw error
      const failed = failure(call.command, error)
      throw failed instanceof CallError ? failed : new Unavailable(call.command, failed.kind, text(failed), false, { cause: error })
    }
  }

  // On a connection of its own, for the server reads nothing else from it. Closed at the end, so that the call leaves its
  // line if nobody listens any more.
  async #wait(call: Call, block: number, options: SendOptions): Promise<unknown> {
    const { connectTimeout } = this.settings
    if (!this.#isReady) await this.#connected(call, connectTimeout, options.signal)
    const patience = (block === 0 ? LONGEST_WAIT : block) + GRACE
    for (let attempt = 1; ; attempt += 1) {
      const opened = this.#client.line(call)
      const unsent = () => new Unavailable(call.command, 'timeout', `no connection within ${connectTimeout} ms`, false)
      try {
        const line = await within(opened, connectTimeout, options.signal, unsent)
        return await within(line.send(call), patience, options.signal, () => late(call, patience))
      } catch (error) {
        if (attempt >= REDIRECTIONS || !isMoved(error)) throw error
        // The client of the cluster follows this one, and then knows the node.
        await this.#client.send(new Call('', ['RL.INFO']).key(call.keys[0] ?? ''))
      } finally {
        opened.then((line) => line.close(), () => undefined)
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
    const change = this.#breaker?.failed(performance.now())
    if (change === 'opened') this.#opened(failed)
    if (change === 'reopened' || (failed.kind === 'connection' && this.#client.primaries > 1)) this.#renew()
    return failed
  }

  // A client that is not connected does not say why. If the server rejected it, the call is wrong.
  #reason(call: Call, failed: Unavailable | CallError): Unavailable | CallError {
    const { lastError } = this.#client
    if (failed instanceof CallError || failed.maybeSent || failed.kind === 'breaker' || lastError === undefined) return failed
    const why = failure(call.command, lastError)
    return why instanceof CallError ? why : new Unavailable(call.command, failed.kind, text(why), false, { cause: lastError })
  }

  #opened(error: Unavailable): void {
    this.counters.breakerOpened += 1
    const { failures, cooldown } = this.settings.breaker ?? { failures: 0, cooldown: 0 }
    this.log.warn('opened', `${failures} calls in a row had no answer; the server is not asked for ${cooldown} ms (${error.message})`)
  }

  // A connection may be dead without a word, and a client of a cluster may hold on to nodes that are gone. So there is a
  // second one, which takes over when it is connected.
  #renew(): void {
    const now = performance.now()
    if (this.#next !== undefined || this.#isClosed || now - this.#renewed < RENEWAL) return
    this.#renewed = now
    const next = ownClient(this.redis, this.settings)
    this.#next = next
    const given = setTimeout(() => this.#giveUp(next), this.settings.connectTimeout * 2)
    given.unref()
    next.ready.then(
      () => {
        clearTimeout(given)
        if (this.#next === next) this.#takeOver(next)
      },
      () => {
        clearTimeout(given)
        this.#giveUp(next)
      },
    )
  }

  #takeOver(next: OwnClient): void {
    this.#next = undefined
    if (this.#isClosed) return next.close()
    this.#client.close()
    this.#client = next
    this.#isReady = true
  }

  #giveUp(next: OwnClient): void {
    next.close()
    if (this.#next === next) this.#next = undefined
  }

  #watch(client: OwnClient): void {
    const settle = () => (this.#isReady = true)
    client.ready.then(settle, settle)
  }
}

function late(call: Call, ms: number): Unavailable {
  return new Unavailable(call.command, 'timeout', `no answer within ${ms} ms`, true)
}

// Without the command, which stands before it.
function text(error: Unavailable): string {
  return error.message.slice(error.command.length + 2)
}

function isMoved(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('MOVED ')
}
