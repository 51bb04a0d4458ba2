/** The servers that a limiter asks: one, or the nodes of a cluster. */

import type { Settings } from '../call/settings.js'
import type { Core } from '../decide/core.js'
import { Health } from '../decide/health.js'
import type { OwnClient } from './own.js'
import { Turns } from './turns.js'

// The most calls that are under way to a server. More would time out in the queue before they are read.
const UNDER_WAY = 1000
// The most connections to a server that are opened at a time.
const OPENING = 16

/** A server, and the queues before it. */
export class Node extends Health {
  /** For calls that do not wait in the server. */
  readonly calls = new Turns(UNDER_WAY)
  /** For the connections of calls that wait. */
  readonly connections = new Turns(OPENING)
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
