/**
 * The connection of a limiter, which is replaced if it seems to be dead.
 *
 * @module
 */

import { ownClient, type OwnClient, type RedisClient } from './clients/client.js'
import type { Settings } from './options.js'
import { within, type Late } from './within.js'

// The shortest time between two attempts to replace the connection, in ms.
const RENEWAL = 1000

/** A connection, and perhaps the one that will replace it. */
export class Link {
  readonly keyPrefix: string
  readonly #connectBy: number
  #client: OwnClient
  #next: OwnClient | undefined
  #isReady = false
  #renewed = -RENEWAL
  #isClosed = false

  constructor(
    private readonly redis: RedisClient,
    private readonly settings: Settings,
  ) {
    this.#connectBy = performance.now() + settings.connectTimeout
    this.#client = ownClient(redis, settings)
    this.keyPrefix = this.#client.keyPrefix
    const settle = () => (this.#isReady = true)
    this.#client.ready.then(settle, settle)
  }

  /** The client as it is now. */
  get client(): OwnClient {
    return this.#client
  }

  /** Whether the first attempt to connect is over. Only that one is waited for. */
  get isReady(): boolean {
    return this.#isReady
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Waits for the first attempt to connect: for `timeout`, or longer if `connectTimeout` is not over. Times are in ms. */
  connected(timeout: number, signal: AbortSignal | undefined, late: Late): Promise<void> {
    return within(this.#client.ready, Math.max(timeout, this.#connectBy - performance.now()), signal, late)
  }

  /**
   * Opens a second connection, which takes over when it is connected.
   *
   * A connection may be dead without a word, and a client of a cluster may hold on to nodes that are gone.
   */
  renew(): void {
    const now = performance.now()
    if (this.#next !== undefined || this.#isClosed || now - this.#renewed < RENEWAL) return
    this.#renewed = now
    const next = ownClient(this.redis, this.settings)
    this.#next = next
    const patience = setTimeout(() => this.#giveUp(next), this.settings.connectTimeout * 2)
    patience.unref()
    next.ready
      .then(
        () => this.#takeOver(next),
        () => this.#giveUp(next),
      )
      .finally(() => clearTimeout(patience))
  }

  /** Ends all connections. Calls that are under way fail. */
  close(): void {
    this.#isClosed = true
    this.#client.close()
    this.#next?.close()
  }

  #takeOver(next: OwnClient): void {
    // It was given up.
    if (this.#next !== next || this.#isClosed) return
    this.#next = undefined
    this.#client.close()
    this.#client = next
    this.#isReady = true
  }

  #giveUp(next: OwnClient): void {
    next.close()
    if (this.#next === next) this.#next = undefined
  }
}
