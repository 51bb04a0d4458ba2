/** What an application may be told of. */

import { checkFunction } from '../call/arguments.js'
import type { Call } from '../call/call.js'
import { CallError, Unavailable } from '../errors.js'
import type { Decision } from './decision.js'
import type { Log } from './log.js'

/** What was asked: the command, the first key without prefixes, and how long the answer took, in ms. */
export interface Asked {
  readonly command: string
  readonly key: string
  readonly ms: number
}

/** Functions that are called. What they throw is logged, and changes no decision. */
export interface Hooks {
  /** Each decision about a request, a lease or a hold, also from memory and without an answer. */
  onDecision?: ((decision: Decision, asked: Asked) => void) | undefined
  /** Each call without an answer, and each that the server rejected, also in the background. */
  onError?: ((error: Unavailable | CallError) => void) | undefined
}

/** Calls the functions of an application. */
export class Told {
  readonly #decided: Set<NonNullable<Hooks['onDecision']>> = new Set()

  constructor(private readonly hooks: Hooks, private readonly log: Log) {
    const { onDecision, onError } = hooks
    if (onDecision !== undefined) checkFunction('onDecision', onDecision)
    if (onError !== undefined) checkFunction('onError', onError)
    if (onDecision !== undefined) this.#decided.add(onDecision)
  }

  /** Adds a function. Returns one that removes it. */
  add(onDecision: NonNullable<Hooks['onDecision']>): () => void {
    this.#decided.add(onDecision)
    return () => void this.#decided.delete(onDecision)
  }

  decision({ command, keys, prefix }: Call, decision: Decision, ms: number): void {
    for (const hook of this.#decided) this.#call(() => hook(decision, { command, key: keys[0]?.slice(prefix.length) ?? '', ms }))
  }

  error(error: unknown): void {
    const { onError } = this.hooks
    if (onError !== undefined && (error instanceof CallError || error instanceof Unavailable)) this.#call(() => onError(error))
  }

  #call(hook: () => void): void {
    try {
      hook()
    } catch (error) {
      this.log.warn('hook', `hook failed: ${error instanceof Error ? `${error.name}: ${error.message}` : String(error)}`)
    }
  }
}
