/** A call: the words of a command, and what a client must know to send them. */

import { checkList, shown } from './arguments.js'
import { ConfigurationError } from '../errors.js'
import { milliseconds, type Duration, type Limiter } from './values.js'
import { limitOf, type LimitLike } from './limit.js'

/** An id under which a charge is held, and for how long. */
export interface HoldOptions {
  /** 1 to 256 bytes, such as a UUID. Never take it from a user. */
  id: string
  /** After this time the hold is forgotten, and the charge stands. */
  ttl: Duration
}

/** Sends calls. */
export interface Sender {
  /** What stands before each key, besides the prefix of the caller. */
  readonly keyPrefix: string
  send(call: Call): Promise<unknown>
}

// They have no encoding in UTF-8, so different keys would be the same.
const LONE = /\p{Surrogate}/u
// Replicas may have an old version of a policy.
const OF_PRIMARIES = new Set(['RL.ASKPEEK'])
// Each primary of a cluster has policies of its own.
const EVERYWHERE = new Set(['RL.POLICY SET', 'RL.POLICY DEL', 'RL.POLICY LOAD'])

/** The words of a command, put together from left to right. */
export class Call {
  readonly words: string[]
  /** Whether a replica may answer. */
  readonly readonly: boolean
  /** The keys as they are sent. On a cluster the first one decides which node gets the call. */
  readonly keys: string[] = []
  /** How long the call may wait in the server, in ms, if it has `BLOCK`. */
  block: number | undefined

  /**
   * @param prefix - stands before each key
   * @param command - the command and its subcommand, if it has one
   * @param readonly - whether a replica may answer
   */
  constructor(readonly prefix: string, command: readonly string[], readonly = false) {
    this.words = [...command]
    this.readonly = readonly && !OF_PRIMARIES.has(this.words[0] ?? '')
  }

  /** The same call, for a primary. */
  atPrimary(): Call {
    const call = new Call(this.prefix, this.words)
    call.keys.push(...this.keys)
    return call
  }

  /** The command and its subcommand, as in `RL.POLICY SET`. */
  get command(): string {
    const [name = '', subcommand = ''] = this.words
    return name === 'RL.POLICY' ? `${name} ${subcommand}` : name
  }

  /** Whether all primaries of a cluster must get it. */
  get goesEverywhere(): boolean {
    return this.keys.length === 0 && EVERYWHERE.has(this.command)
  }

  /** A key. */
  key(key: string): this {
    checkKey(key)
    const prefixed = this.prefix + key
    this.keys.push(prefixed)
    this.words.push(prefixed)
    return this
  }

  /** A word and a key, if that is given. */
  keyOption(token: string, key: string | undefined): this {
    return key === undefined ? this : this.value(token).key(key)
  }

  /** The number of the keys, and the keys. */
  numbered(keys: readonly string[]): this {
    checkList('keys', keys)
    this.words.push(String(keys.length))
    for (const key of keys) this.key(key)
    return this
  }

  /** Further keys, behind the word `KEYS`. */
  more(keys: readonly string[] | undefined): this {
    if (keys === undefined) return this
    checkList('keys', keys)
    if (keys.length === 0) return this
    this.words.push('KEYS')
    for (const key of keys) this.key(key)
    return this
  }

  /** A key and a payload, as often as given. */
  payloads(pairs: readonly (readonly [key: string, payload: string])[]): this {
    for (const [key, payload] of pairs) this.key(key).value(payload)
    return this
  }

  /** A word, if it is given. */
  value(value: string | number | undefined): this {
    if (value !== undefined) this.words.push(word(value))
    return this
  }

  /** Words. */
  values(values: readonly string[]): this {
    this.words.push(...values)
    return this
  }

  /** A field and its value, as often as given. */
  fields(fields: Readonly<Record<string, string | number>>): this {
    for (const [field, value] of Object.entries(fields)) this.words.push(field, String(value))
    return this
  }

  /** A duration, if it is given, behind its word if it has one. */
  duration(value: Duration | undefined, token?: string): this {
    if (value === undefined) return this
    return this.value(token).value(value)
  }

  /** A word and its value, if that is given. */
  option(token: string, value: string | number | undefined): this {
    if (value !== undefined) this.words.push(token, word(value))
    return this
  }

  /** A word, if it is wanted. */
  flag(token: string, wanted: boolean | undefined): this {
    if (wanted) this.words.push(token)
    return this
  }

  /** `HOLD id ttl`, if it is given. */
  hold(hold: HoldOptions | undefined): this {
    if (hold !== undefined) this.words.push('HOLD', hold.id, String(hold.ttl))
    return this
  }

  /** `BLOCK timeout`, if it is given. */
  wait(timeout: Duration | undefined): this {
    if (timeout === undefined) return this
    this.block = milliseconds('block', timeout)
    return this.duration(timeout, 'BLOCK')
  }

  /** A limiter's name and its parameters. */
  limiter(limiter: Limiter): this {
    return this.value(limiter.name).values(limiter.words)
  }

  /** `LIMIT` and what is behind it, as often as given. */
  limits(limits: readonly LimitLike[]): this {
    checkList('limits', limits)
    for (const limit of limits) this.values(limitOf(limit).clause)
    return this
  }
}

/** Checks a key. */
export function checkKey(key: string): void {
  if (typeof key !== 'string' || key === '') throw new ConfigurationError(`a key must be a text that is not empty, such as 'user:1', not ${shown(key)}`)
  if (LONE.test(key)) throw new ConfigurationError('a key must be a text without lone surrogates')
}

// The server takes no exponents.
function word(value: string | number): string {
  const [digits = '', zeros] = String(value).split(/e-(?=\d+$)/)
  return typeof value === 'string' || zeros === undefined ? String(value) : `0.${'0'.repeat(Number(zeros) - 1)}${digits.replace('.', '')}`
}
