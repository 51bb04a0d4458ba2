/** What a request has taken, and what becomes of it. */

import type { Outcome } from '../call/options.js'
import type { Decision } from '../decide/decision.js'
import type { Connected } from '../taken/connected.js'
import { problem, type Refusal } from './response.js'
import type { Asked } from './rules.js'
import type { Answer, HeaderStyle, Stack } from './stack.js'
import type { Spent, SpentOf, Step } from './steps.js'

/** What becomes of a request. */
export interface Passage {
  /** Set if the request does not go on. */
  refusal: Refusal | undefined
  /** The headers of the response. */
  headers: Readonly<Record<string, string>>
  /** The decisions by the names of the rules, also those of gates before. */
  decisions: Readonly<Record<string, Decision>>
  /** What the handler counts. */
  spent: Spent
  /** How long the request has to wait before its handler runs, in ms: a queue or a booking has named its time. */
  wait: number
  /**
   * Waits so long. Throws if the limiter is closed meanwhile.
   *
   * @returns false if the passage has ended before its turn. Then the handler need not run
   */
  turn(): Promise<boolean>
  /**
   * Settles and releases. Call it when the response is over, however that came. The second call does nothing. While this gate
   * or a later one asks or waits, the handler did not run: then only what is counted is charged, and no estimate.
   *
   * @param status - that of the response, for rules with `counts`. Nothing if the client hung up before
   */
  end(status?: number): Promise<void>
  /** The same for a request that nobody waits for any more before its handler ran. Budgets are given back. */
  cancel(): Promise<void>
}

/** Where the answers of a gate go. */
export interface Told {
  stack: Stack
  style: HeaderStyle
  to: Connected
}

/** A request that goes on. It is noted in what is taken until it ends. */
export function admitted(steps: readonly Step[], spent: Spent, wait: number, { stack, style, to }: Told): Passage {
  stack.add(answers(steps), true, style, to.runtime.unix())
  let ended: Promise<void> | undefined
  let leave: (() => void) | undefined
  const finish = (spentOf: SpentOf, outcome: Outcome): Promise<void> => {
    to.taken.delete(taken)
    ended ??= oneByOne(steps, (step) => step.end(spentOf, outcome))
    leave?.()
    return ended
  }
  const cancel = () => finish(() => 0, 'IGNORE')
  const end = (outcome: Outcome = 'OK', status?: number) => {
    // No work was done yet. Only a gate inside of a handler finds something counted.
    if (stack.isStopped) return finish(({ name }) => spent[name] ?? 0, 'IGNORE')
    return finish((asked) => (asked.counts === undefined ? spent[asked.name] : doesCount(asked, status, to) ? undefined : 0), outcome)
  }
  const isOpen = steps.some((step) => step.isOpen)
  // Of a queue alone nothing is left to be given back after the wait.
  const taken = { until: isOpen ? Infinity : to.runtime.now() + wait, end: () => end('IGNORE') }
  if (isOpen || wait > 0) to.taken.add(taken)
  return {
    refusal: undefined,
    // A later gate may have added its own meanwhile.
    get headers() {
      return stack.headers
    },
    decisions: stack.decisions,
    spent,
    wait,
    async turn() {
      if (wait === 0 || ended !== undefined) return ended === undefined
      const waited = () =>
        new Promise<void>((resolve) => {
          const cancelTimer = to.runtime.after(wait, resolve)
          leave = () => (cancelTimer(), resolve())
        })
      await stack.stop(waited)
      if (!isOpen) to.taken.delete(taken)
      to.throwIfClosed()
      return ended === undefined
    },
    end: (status) => end('OK', status),
    cancel,
  }
}

/** A request that these steps refused. */
export function refused(steps: readonly Step[], { stack, style, to }: Told): Passage {
  const named = answers(steps)
  const refusing = named.filter(([, decision]) => !decision.allowed)
  const waits = refusing.map(([, { retryAfter }]) => retryAfter)
  const violated = refusing.map(([name]) => name)
  stack.add(named, false, style, to.runtime.unix())
  const retryAfter = waits.includes(null) ? null : Math.max(0, ...waits.map(Number))
  const { headers, decisions } = stack
  return without({ status: 429, body: problem(429, violated), headers, retryAfter, violated, decisions }, stack)
}

/** A request that is not served for the moment. */
export function unavailable(retryAfter: number, { stack }: Told): Passage {
  const headers = { 'Retry-After': String(Math.ceil(retryAfter / 1000)) }
  stack.headers = { ...stack.headers, ...headers }
  return without({ status: 503, body: problem(503, []), headers, retryAfter, violated: [], decisions: stack.decisions }, stack)
}

/** Works on each step, one after another. */
export async function oneByOne(steps: readonly Step[], work: (step: Step) => Promise<void>): Promise<void> {
  for (const step of steps) await work(step)
}

function doesCount({ name, counts }: Asked, status: number | undefined, { core }: Connected): boolean {
  if (status === undefined) return true
  try {
    return Boolean(counts?.(status))
  } catch (error) {
    core.log.warn('counts', `rule '${name}': counts failed, so the request counts: ${String(error)}`)
    return true
  }
}

function without(refusal: Refusal, { decisions }: Stack): Passage {
  const nothing = async () => undefined
  const headers = { 'Content-Type': 'application/problem+json', ...refusal.headers }
  return { refusal, headers, decisions, spent: {}, wait: 0, turn: async () => true, end: nothing, cancel: nothing }
}

function answers(steps: readonly Step[]): Answer[] {
  return steps.flatMap((step) => step.answers)
}
