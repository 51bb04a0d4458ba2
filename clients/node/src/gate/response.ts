/** The answer to a request that does not go on. */

/** The answer to a request that does not go on. */
export interface Refusal {
  /** 429 if a rule refuses. 503 if the request is shed, or if the server did not answer and the limiter fails closed. */
  status: 429 | 503
  /** Of `application/problem+json`. */
  body: string
}

const PROBLEM = 'https://iana.org/assignments/http-problem-types#'
const TYPES = { 429: 'quota-exceeded', 503: 'temporary-reduced-capacity' }

/** @param violated - the names of the rules that refuse */
export function refusal(status: 429 | 503, violated: readonly string[]): Refusal {
  return { status, body: JSON.stringify({ type: PROBLEM + TYPES[status], status, 'violated-policies': violated }) }
}
