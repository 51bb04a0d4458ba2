/** What a request has taken, and what becomes of it. */

import { combinedHeaders, type Named } from '../decide/headers.js'
import { pause } from '../runtime.js'
import type { Connected } from '../taken/connected.js'
import { refusal, type Refusal } from './response.js'
import type { Spent, Step } from './steps.js'

/** What becomes of a request. */
export interface Passage {
  /** Set if the request does not go on. */
  refusal: Refusal | undefined
  /** The headers of the response. */
  headers: Readonly<Record<string, string>>
  /** What the handler counts. */
  spent: Spent
  /** How long the request has to wait before its handler runs, in ms: a queue or a booking has named its time. */
  wait: number
  /** Waits so long. Throws if the limiter is closed meanwhile. */
  turn(): Promise<void>
  /** Settles and releases. Call it when the response is over, however that came. The second call does nothing. */
  end(): Promise<void>
  /** The same for a request that nobody waits for any more before its handler ran. Budgets are given back. */
  cancel(): Promise<void>
}

/** A request that goes on. It is noted in what is taken until it ends. */
export function admitted(steps: readonly Step[], spent: Spent, wait: number, to: Connected): Passage {
  let ended: Promise<void> | undefined
  const finish = (work: (step: Step) => Promise<void>): Promise<void> => {
    to.taken.delete(taken)
    ended ??= oneByOne(steps, work)
    return ended
  }
  const end = () => finish((step) => step.end((name) => spent[name]))
  const taken = { until: Infinity, end }
  if (steps.some((step) => step.isOpen)) to.taken.add(taken)
  return {
    refusal: undefined,
    headers: combinedHeaders(answers(steps), true),
    spent,
    wait,
    async turn() {
      if (wait === 0) return
      await pause(to.runtime, wait)
      to.throwIfClosed()
    },
    end,
    cancel: () => finish((step) => step.end(() => 0)),
  }
}

/** A request that these steps refused. */
export function refused(steps: readonly Step[]): Passage {
  const named = answers(steps)
  const violated = named.filter(([, decision]) => !decision.allowed).map(([name]) => name)
  return without(refusal(429, violated), combinedHeaders(named, false))
}

/** A request that is not served for the moment. */
export function unavailable(retryAfter: number): Passage {
  return without(refusal(503, []), { 'Retry-After': String(Math.ceil(retryAfter / 1000)) })
}

/** Works on each step, one after another. */
export async function oneByOne(steps: readonly Step[], work: (step: Step) => Promise<void>): Promise<void> {
  for (const step of steps) await work(step)
}

function without(refusal: Refusal, headers: Record<string, string>): Passage {
  const nothing = async () => undefined
  const all = { 'Content-Type': 'application/problem+json', ...headers }
  return { refusal, headers: all, spent: {}, wait: 0, turn: nothing, end: nothing, cancel: nothing }
}

function answers(steps: readonly Step[]): Named[] {
  return steps.flatMap((step) => step.answers)
}
