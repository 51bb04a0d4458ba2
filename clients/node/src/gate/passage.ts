/**
 * What becomes of a request.
 *
 * @module
 */

import { ShedStep } from './shed.js'
import type { Spent, Step } from './steps.js'
import { combinedHeaders, type Named } from '../decide/headers.js'
import type { AllTaken } from '../taken/taken.js'

/** The answer to a request that does not go on. */
export interface Refusal {
  /** 429 if a rule refuses. 503 if the request is shed, or if the server did not answer and the limiter fails closed. */
  status: 429 | 503
  /** Of `application/problem+json`. */
  body: string
}

/** What becomes of a request. */
export interface Pass {
  /** Set if the request does not go on. */
  refusal: Refusal | undefined
  /** The headers of the response. */
  headers: Readonly<Record<string, string>>
  /** What the handler counts. */
  spent: Spent
  /** Settles and releases. Call it when the response is over, however that came. The second call does nothing. */
  end(): Promise<void>
  /** The same for a request that nobody waits for any more before its handler ran. Budgets are given back. */
  cancel(): Promise<void>
}

const PROBLEM = 'https://iana.org/assignments/http-problem-types#'

/** A request that goes on. It is noted in what is taken until it ends. */
export function admitted(steps: readonly Step[], spent: Spent, all: AllTaken): Pass {
  let ended: Promise<unknown> | undefined
  const finish = async (work: (step: Step) => Promise<void>) => {
    all.delete(taken)
    ended ??= Promise.all(steps.map(work))
    await ended
  }
  const end = () => finish((step) => step.end((name) => spent[name]))
  const taken = { until: Infinity, end }
  if (steps.some((step) => step.isOpen)) all.add(taken)
  return {
    refusal: undefined,
    headers: combinedHeaders(answers(steps), true),
    spent,
    end,
    cancel: () => finish((step) => step.end(() => 0)),
  }
}

/** A request that the last of these steps refused, or did not answer. */
export function refused(steps: readonly Step[], isAnswered: boolean): Pass {
  const step = steps.at(-1)
  if (!isAnswered) return refusal(503, 'temporary-reduced-capacity', [], { 'Retry-After': '1' })
  if (step instanceof ShedStep) return refusal(503, 'temporary-reduced-capacity', [], { 'Retry-After': String(step.retryAfter) })
  const answered = answers(steps)
  const violated = answered.filter(([, decision]) => !decision.allowed).map(([name]) => name)
  return refusal(429, 'quota-exceeded', violated, combinedHeaders(answered, false))
}

function refusal(status: 429 | 503, problem: string, violated: readonly string[], headers: Record<string, string>): Pass {
  const nothing = async () => undefined
  return {
    refusal: { status, body: JSON.stringify({ type: PROBLEM + problem, status, 'violated-policies': violated }) },
    headers: { 'Content-Type': 'application/problem+json', ...headers },
    spent: {},
    end: nothing,
    cancel: nothing,
  }
}

function answers(steps: readonly Step[]): Named[] {
  return steps.flatMap((step) => step.answers)
}
