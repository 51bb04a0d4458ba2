/**
 * What a limiter knows of the servers that it asks: one, or the nodes of a cluster.
 *
 * @module
 */

import { Breaker } from './breaker.js'
import { Turns } from '../wire/turns.js'
import type { Heard } from '../wire/within.js'

// How long replicas are left alone after one did not answer, in ms.
const REST = 1000
// The most calls that are under way to a server. More would time out in the queue before they are read.
const UNDER_WAY = 1000
// The most connections to a server that are opened at a time.
const OPENING = 16

/** A server. */
export class Server implements Heard {
  replies = 0
  /** For calls that do not wait in the server. */
  readonly calls = new Turns(UNDER_WAY)
  /** For the connections of calls that wait. */
  readonly connections = new Turns(OPENING)

  constructor(
    /** For the log. */
    readonly name: string,
    readonly isPrimary: boolean,
    readonly breaker: Breaker | undefined,
  ) {}
}

/** The primary of a key, and its replicas as one. Each has a breaker, so that the silence of one is not the other's. */
export interface Shard {
  readonly primary: Server
  readonly replicas: Server
}

/** All servers. */
export class Servers {
  readonly #shards = new Map<string | undefined, Shard>()

  constructor(private readonly breaker: { failures: number; cooldown: number } | null) {}

  /**
   * The servers of an owner, as `OwnClient.owner` names it.
   *
   * @param owners - all owners there are: others are forgotten
   */
  of(owner: string | undefined, owners: () => readonly string[]): Shard {
    const known = this.#shards.get(owner)
    if (known !== undefined) return known
    this.#forget(new Set(owners()))
    const { breaker } = this
    const name = owner ?? 'the server'
    const shard = {
      primary: new Server(name, true, breaker === null ? undefined : new Breaker(breaker.failures, breaker.cooldown)),
      replicas: new Server(`a replica of ${name}`, false, new Breaker(1, REST)),
    }
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
