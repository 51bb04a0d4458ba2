/** The answer to a request that does not go on. */

import type { Decision } from '../decide/decision.js'
import type { Fields } from '../decide/headers.js'

/** The answer to a request that does not go on. */
export interface Refusal {
  /** 429 if a rule refuses. 503 if the request is shed, or if the server did not answer and the limiter fails closed. */
  status: 429 | 503
  /** Of `application/problem+json`. */
  body: string
  /** The headers, without that of the body's type. */
  headers: Readonly<Fields>
  /** After how many ms to try again. `null`: the request will never be admitted. */
  retryAfter: number | null
  /** The names of the rules that refuse. */
  violated: readonly string[]
  /** The decisions by the names of the rules. There are none without an answer. */
  decisions: Readonly<Record<string, Decision>>
}

const TYPES = 'https://iana.org/assignments/http-problem-types#'
const PROBLEMS = {
  429: { type: `${TYPES}quota-exceeded`, title: 'Request cannot be satisfied as assigned quota has been exceeded' },
  503: { type: `${TYPES}temporary-reduced-capacity`, title: 'Request cannot be satisfied due to temporary server capacity constraints' },
}

/** The problem details (RFC 9457) of a refusal, of draft-ietf-httpapi-ratelimit-headers-10. */
export function problem(status: 429 | 503, violated: readonly string[]): string {
  return JSON.stringify({ ...PROBLEMS[status], status, 'violated-policies': violated })
}
