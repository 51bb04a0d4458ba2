/** The connection of a limiter, which is replaced if it seems to be dead. */

import { unconnected, unsent } from '../decide/failure.js'
import type { Cancel, Runtime } from '../runtime.js'
import type { OwnClient } from './own.js'
import { within } from './within.js'

// The shortest time between two attempts to replace the connection, in ms.
const RENEWAL = 1000
// How often it is looked whether a cluster can be asked, though not all of its nodes are connected. In ms.
const LOOK = 50

/** A connection, and how many calls use it. One that was replaced is closed when its last call is over. */
export interface Used {
  readonly client: OwnClient
  calls: number
}

/** A connection, and perhaps the one that will replace it. */
export class Link {
  readonly keyPrefix: string
  readonly #connectBy: number
  readonly #usable: Promise<void>
  #used: Used
  #next: OwnClient | undefined
  #isReady = false
  #renewed = -RENEWAL
  #isClosed = false

  /**
   * @param connect - opens a connection
   * @param connectTimeout - how long the first one may take, in ms
   */
  constructor(
    private readonly connect: () => OwnClient,
    private readonly connectTimeout: number,
    private readonly runtime: Runtime,
  ) {
    this.#connectBy = runtime.now() + connectTimeout
    this.#used = { client: connect(), calls: 0 }
    this.keyPrefix = this.client.keyPrefix
    this.#follow(this.client)
    this.#usable = this.#whenUsable(this.client)
    const settle = () => (this.#isReady = true)
    this.#usable.then(settle, settle)
  }

  /** The client as it is now. */
  get client(): OwnClient {
    return this.#used.client
  }

  /** Whether the first attempt to connect is over. Only that one is waited for. */
  get isReady(): boolean {
    return this.#isReady
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Waits for the first attempt to connect: for `timeout`, or longer if `connectTimeout` is not over. Times are in ms. */
  async connected(timeout: number, signal: AbortSignal | undefined): Promise<void> {
    const ms = Math.max(timeout, this.#connectBy - this.runtime.now())
    const late = () => unconnected(Math.max(timeout, this.connectTimeout))
    try {
      await within(this.runtime, this.#usable, { ms, signal, late })
    } catch (error) {
      throw signal?.aborted ? error : unsent(error)
    }
  }

  /** Uses the client as it is now, which stays open until {@link leave}. */
  take(): Used {
    this.#used.calls += 1
    return this.#used
  }

  /** Uses it no more. */
  leave(used: Used): void {
    used.calls -= 1
    if (used.calls === 0 && used !== this.#used) used.client.close()
  }

  /**
   * Opens a second connection, which takes over when it is connected.
   *
   * A connection may be dead without a word, and a client of a cluster may hold on to nodes that are gone.
   */
  renew(): void {
    const now = this.runtime.now()
    if (this.#next !== undefined || this.#isClosed || now - this.#renewed < RENEWAL) return
    this.#renewed = now
    const next = this.connect()
    this.#next = next
    const cancel = this.runtime.later(this.connectTimeout * 2, () => this.#giveUp(next))
    next.ready
      .then(() => this.#takeOver(next), () => this.#giveUp(next))
      .finally(cancel)
  }

  /** Ends all connections. */
  close(): void {
    this.#isClosed = true
    this.#next?.close()
    this.client.close()
  }

  // A cluster with a silent node is never connected to all nodes. So after some time it can be used if its nodes are known.
  #whenUsable(client: OwnClient): Promise<void> {
    return new Promise((resolve, reject) => {
      let cancel: Cancel = this.runtime.later(this.connectTimeout, look)
      const { runtime } = this
      const isClosed = () => this.#isClosed
      function look(): void {
        if (client.owners.length > 0) resolve()
        else if (!isClosed()) cancel = runtime.later(LOOK, look)
      }
      client.ready.then(resolve, reject).finally(() => cancel())
    })
  }

  #takeOver(next: OwnClient): void {
    // It was given up.
    if (this.#next !== next || this.#isClosed) return
    this.#next = undefined
    const before = this.#used
    this.#used = { client: next, calls: 0 }
    this.#isReady = true
    this.#follow(next)
    if (before.calls === 0) before.client.close()
  }

  // Until it is replaced: the first attempt may fail, or come too early after one before.
  #follow(client: OwnClient): void {
    const follow = () => {
      if (this.client !== client || this.#isClosed) return
      this.renew()
      this.runtime.later(RENEWAL, follow)
    }
    void client.moved?.then(follow)
  }

  #giveUp(next: OwnClient): void {
    next.close()
    if (this.#next === next) this.#next = undefined
  }
}
