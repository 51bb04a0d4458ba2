/** The servers that a limiter asks: one, or the nodes of a cluster. */

import type { Call } from '../call/call.js'
import type { Settings } from '../call/settings.js'
import { Breaker, type Change, type Ticket } from '../decide/breaker.js'
import type { Core } from '../decide/core.js'
import { counts, isAnswer, leftAlone } from '../decide/failure.js'
import { CallError, type Unavailable } from '../errors.js'
import type { OwnClient } from './own.js'
import { Turns } from './turns.js'

// The most calls that are under way to a server. More would time out in the queue before they are read.
const UNDER_WAY = 1000
// The most connections to a server that are opened at a time.
const OPENING = 16
// How long replicas are left alone after one did not answer, in ms.
const REST = 1000

/** A server, or the replicas of one as a whole: whether it answers, and the queues before it. Times are in ms. */
export class Node {
  /** For calls that do not wait in the server. */
  readonly calls = new Turns(UNDER_WAY)
  /** For the connections of calls that wait. */
  readonly connections = new Turns(OPENING)
  /** The number of replies until now. */
  replies = 0
  readonly #breaker: Breaker | undefined

  /** @param isPrimary - if a replica does not answer, its primary is asked, and nothing is logged */
  constructor(
    readonly name: string,
    readonly isPrimary: boolean,
    private readonly breaker: Settings['breaker'],
    private readonly core: Core,
  ) {
    if (!isPrimary) this.#breaker = new Breaker(1, REST)
    else if (breaker !== null) this.#breaker = new Breaker(breaker.failures, breaker.cooldown)
  }

  /** Returns the ticket of a call that may be sent. Throws if the server is left alone. */
  admit(call: Call, now: number): Ticket {
    const ticket = this.#breaker === undefined ? 0 : this.#breaker.admits(now)
    if (ticket === undefined) throw leftAlone(call.command, this.name)
    return ticket
  }

  /** Throws for a call that was admitted, if meanwhile it is known that nobody answers. */
  check(call: Call, now: number): void {
    if (this.isOpen(now)) throw leftAlone(call.command, this.name)
  }

  /** Whether calls are answered without the server for now. */
  isOpen(now: number): boolean {
    return this.#breaker?.isOpen(now) ?? false
  }

  /** It answered, if only that a call is wrong. */
  answered(): void {
    this.replies += 1
    const change = this.#breaker?.succeeded()
    if (change === 'closed' && this.isPrimary) this.core.log.warn(`closed ${this.name}`, `breaker closed: ${this.name} answers again`)
  }

  /** The caller of this ticket gave up. */
  unknown(ticket: Ticket): void {
    this.#breaker?.unknown(ticket)
  }

  /** The call of this ticket failed. `isLost`: its connection ended. Returns what the breaker did. */
  failed(ticket: Ticket, error: Unavailable | CallError, now: number, isLost: boolean): Change {
    if (error instanceof CallError || isAnswer(error)) {
      this.answered()
      return undefined
    }
    if (!counts(error)) {
      this.unknown(ticket)
      return undefined
    }
    const change = this.#breaker?.failed(ticket, now, isLost)
    if (change === 'opened' && this.isPrimary) {
      this.core.counters.breakerOpened += 1
      const line = `breaker opened: ${this.name} did not answer ${this.breaker?.failures} calls in a row: ${error.reason}`
      this.core.log.warn(`opened ${this.name}`, line)
    }
    return change
  }
}

/** The primary of a key, and its replicas as one. Each has a breaker, so that the silence of one is not the other's. */
export interface Shard {
  readonly primary: Node
  readonly replicas: Node
}

/** All servers. */
export class Nodes {
  readonly #shards = new Map<string | undefined, Shard>()

  constructor(private readonly breaker: Settings['breaker'], private readonly core: Core) {}

  /**
   * The servers of an owner, as `OwnClient.owner` names it.
   *
   * @param client - knows all owners there are: others are forgotten
   */
  of(owner: string | undefined, client: Pick<OwnClient, 'name' | 'owners'>): Shard {
    const known = this.#shards.get(owner)
    if (known !== undefined) return known
    this.#forget(new Set(client.owners))
    const { breaker, core } = this
    const name = owner ?? client.name
    const primary = new Node(name, true, breaker, core)
    const shard = { primary, replicas: new Node(`a replica of ${name}`, false, breaker, core) }
    this.#shards.set(owner, shard)
    return shard
  }

  /** The number of owners that are known. */
  get size(): number {
    return this.#shards.size
  }

  #forget(owners: ReadonlySet<string>): void {
    for (const owner of this.#shards.keys()) if (owner !== undefined && !owners.has(owner)) this.#shards.delete(owner)
  }
}
