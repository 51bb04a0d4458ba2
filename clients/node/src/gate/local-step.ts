/** The step of a rule that this process answers from memory. */

import type { Decision } from '../decide/decision.js'
import type { Answer } from './stack.js'
import type { Local } from '../local/local.js'
import type { Step } from './steps.js'

/** What a rule takes from memory. It is given back if another step refuses. */
export class LocalStep implements Step {
  answers: readonly Answer[] = []
  readonly isOpen = false
  #decision: Decision | undefined

  constructor(private readonly local: Local, private readonly name: string, private readonly cost: number) {}

  get key(): string {
    return this.local.key
  }

  async ask(): Promise<Decision> {
    this.#decision = await this.local.take(this.cost)
    this.answers = [[this.name, this.#decision]]
    return this.#decision
  }

  async undo(): Promise<void> {
    if (this.#decision?.allowed) await this.local.giveBack(this.cost, this.#decision)
  }

  async end(): Promise<void> {}
}
