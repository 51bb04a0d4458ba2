/** How a limiter asks its questions, ends what it has taken, and is closed. */

import { Call, type Sender } from '../call/call.js'
import { Questions, type Question } from '../call/questions.js'
import type { Settings } from '../call/settings.js'
import { Core, type DecisionOf } from '../decide/core.js'
import { Refused } from '../decide/decision.js'
import type { Hooks } from '../decide/hooks.js'
import { CallError, Closed, Unavailable } from '../errors.js'
import type { Runtime } from '../runtime.js'
import { Channel, type SendOptions } from '../wire/channel.js'
import type { OwnClient } from '../wire/own.js'
import { Readiness } from '../wire/ready.js'
import { Background } from './background.js'
import { Ending, type EndingOptions, type Outcome } from './endings.js'
import { Taken } from './taken.js'

// What gives something back: a call that was refused before may be admitted now. Allowed while the limiter closes.
const GIVES_BACK = /^(RL\.(MULTI|ASK)?(REFUND|SETTLE)|RL\.(MULTI)?RELEASE|UNLINK)$/

/** The way to the server, and what it has taken there. */
export class Connected implements Sender {
  readonly core: Core
  readonly channel: Channel
  readonly questions: Questions
  readonly taken: Taken
  readonly readiness: Readiness
  /** The limit of each rule of the gates, by its name, as far as it is known before there is a request. */
  readonly claims = new Map<string, string>()
  readonly #background: Background
  #isClosed = false
  #closed: Promise<void> | undefined
  #underWay = 0
  #idle: () => void = () => {}

  /** @param connect - opens a connection */
  constructor(connect: () => OwnClient, readonly settings: Settings, readonly runtime: Runtime, hooks?: Hooks) {
    this.core = new Core(settings, () => runtime.now(), hooks)
    this.channel = new Channel(connect, settings, this.core, runtime)
    this.questions = new Questions(this.prefix, settings.cache)
    this.readiness = new Readiness(this.channel, this.prefix, (call, options) => this.send(call, options))
    this.taken = new Taken(() => runtime.now())
    this.#background = new Background((call) => this.outcome(call), this.core, runtime)
  }

  get keyPrefix(): string {
    return this.channel.keyPrefix
  }

  /** What stands before each key of the limiter. */
  get prefix(): string {
    return this.keyPrefix + this.settings.prefix
  }

  /** Whether `close` has begun. Who is granted something from then on gives it back. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Throws if `close` has begun. */
  throwIfClosed(): void {
    if (this.#isClosed) throw new Closed()
  }

  /** Begins a call with the limiter's prefix. */
  call(command: string, readonly = false): Call {
    return new Call(this.prefix, [command], readonly)
  }

  /** Sends a call. All calls of a limiter go this way, so that refusals are forgotten when one of them gives something back. */
  async send(call: Call, options?: SendOptions): Promise<unknown> {
    const givesBack = GIVES_BACK.test(call.command)
    if (!givesBack) this.throwIfClosed()
    this.#underWay += 1
    try {
      return await this.channel.send(call, options)
    } finally {
      // Without an answer too: it may have been executed.
      if (givesBack) this.core.gaveBack(call.keys)
      this.#underWay -= 1
      if (this.#underWay === 0) this.#idle()
    }
  }

  /** Sends a call, and returns what came of it. Nothing if the limiter is closed. */
  outcome(call: Call): Promise<Outcome | undefined> {
    return this.send(call).then(
      (reply) => ({ reply }),
      (error: unknown) => (error instanceof Unavailable || error instanceof CallError ? error : undefined),
    )
  }

  /** Gives something back. Never throws, and does not repeat it: it might give back twice. */
  async giveBack(call: Call): Promise<void> {
    const outcome = await this.outcome(call)
    if (outcome instanceof Error) this.core.log.failed(call, 'not given back', outcome)
  }

  /**
   * Asks. Throws what is not a lack of an answer: a wrong call, or the reason of the signal.
   *
   * @param isCounted - whether the lack of an answer is counted
   */
  async decide<A>(question: Question<A>, isCounted = !question.isLook): Promise<DecisionOf<A>> {
    const { core, runtime } = this
    core.check(question)
    const known = core.remembered(question, runtime.now())
    if (known !== undefined) return known
    const { generation } = core
    const since = runtime.now()
    const { signal, timeout } = question
    try {
      const reply = await this.send(question.call, { signal, timeout })
      return core.decided(question, reply, generation, since, runtime.now())
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      return core.undecided(question, error, isCounted, runtime.now() - since)
    }
  }

  /**
   * Asks for what must be ended. Throws if its work must not begin.
   *
   * @param undo - ends what may have been taken all the same. `isGivenUp`: its caller gave up, or `close` ended its wait
   */
  async take<A>(question: Question<A>, undo: (isGivenUp: boolean) => void): Promise<DecisionOf<A>> {
    const { signal } = question
    signal?.throwIfAborted()
    this.throwIfClosed()
    let decision: DecisionOf<A>
    try {
      decision = await this.decide(question)
    } catch (error) {
      if (signal?.aborted || this.#isClosed) undo(true)
      throw error
    }
    const { allowed, error } = decision
    if (error === undefined && !allowed) throw new Refused(decision)
    if (error !== undefined && !allowed) {
      if (error.maybeSent) undo(false)
      throw error
    }
    return decision
  }

  /** Writes what became of a call. */
  note(call: Call, what: string, why: string): void {
    this.core.log.about(call, this.channel.nodeOf(call.keys[0]), what, why)
  }

  /** Ends what was taken. Repeated in the background until that is certain. Never throws. */
  end(call: Call, options: EndingOptions): Promise<void> {
    return this.#background.end(new Ending(call, options, this.core.log, this.runtime.now()))
  }

  /**
   * Refuses new calls, except those that give something back. Releases and settles what is taken or still granted, waits for
   * calls under way, tries once more what had no answer, and ends all connections.
   */
  close(): Promise<void> {
    this.#isClosed = true
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    this.channel.endWaits()
    this.#background.stop()
    await this.taken.end()
    await this.#whenIdle()
    await this.#background.tryOnceMore()
    this.channel.close()
  }

  // Callers have their replies one turn later, and give back what they were granted.
  async #whenIdle(): Promise<void> {
    do {
      if (this.#underWay > 0) await new Promise<void>((resolve) => (this.#idle = resolve))
      await new Promise<void>((resolve) => this.runtime.soon(resolve))
    } while (this.#underWay > 0)
  }
}
