/** The step of a rule that this process answers from memory. */

import type { Decision } from '../decide/decision.js'
import type { Answer } from './stack.js'
import type { Local } from '../local/local.js'
import type { LimitAsked } from './rules.js'
import type { Step } from './steps.js'

/** What a rule takes from memory. It is given back if another step refuses. */
export class LocalStep implements Step {
  answers: readonly Answer[] = []
  readonly isOpen = false
  #decision: Decision | undefined

  constructor(private readonly local: Local, private readonly asked: LimitAsked) {}

  get key(): string {
    return this.local.key
  }

  async ask(): Promise<Decision> {
    const { name, cost, spread } = this.asked
    this.#decision = await this.local.take(cost)
    this.answers = [[name, this.#decision, spread]]
    return this.#decision
  }

  async undo(): Promise<void> {
    if (this.#decision?.allowed) await this.local.giveBack(this.asked.cost, this.#decision)
  }

  async end(): Promise<void> {}
}
