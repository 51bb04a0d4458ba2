/** What a limiter counts. */

/** Counts since the limiter was made. */
export interface Counters {
  /** Requests, leases and holds that were asked for. */
  asked: number
  /** Of these: admitted by the server. */
  allowed: number
  /** Of these: refused by the server, or from memory. */
  refused: number
  /** Of the refused: those from memory. */
  cached: number
  /** Calls without an answer, of any kind. Set an alert on it. */
  unavailable: number
  /** Of the asked: let through without an answer. */
  failedOpen: number
  /** Of the asked: not let through without an answer. */
  failedClosed: number
  /** Calls that the server rejected as wrong. */
  wrongCalls: number
  /** How often the circuit breaker opened. */
  breakerOpened: number
  /** Leases that ended before their work. */
  leasesLost: number
  /** Releases and settlements that had to be repeated. */
  releasesRetried: number
}

/** All zero. */
export function noCounts(): Counters {
  return {
    asked: 0,
    allowed: 0,
    refused: 0,
    cached: 0,
    unavailable: 0,
    failedOpen: 0,
    failedClosed: 0,
    wrongCalls: 0,
    breakerOpened: 0,
    leasesLost: 0,
    releasesRetried: 0,
  }
}
