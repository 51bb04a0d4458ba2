/** What a limiter counts. */

/** Counts since the limiter was made. */
export class Counters {
  /** Requests, leases and holds that were asked for. */
  asked = 0
  /** Of these: admitted by the server, or from memory. */
  allowed = 0
  /** Of these: refused by the server, or from memory. */
  refused = 0
  /** Of the refused: those from memory. */
  cached = 0
  /** Of the admitted and the refused: those that a local limit answered. */
  answeredLocally = 0
  /** Calls without an answer, of any kind. Set an alert on it. */
  unavailable = 0
  /** Of the asked: let through without an answer. */
  failedOpen = 0
  /** Of the asked: not let through without an answer. */
  failedClosed = 0
  /** Of the asked: admitted without an answer, by the share of this process. */
  insuredAllowed = 0
  /** Of the asked: refused without an answer, by the share of this process. */
  insuredRefused = 0
  /** Calls that the server rejected as wrong. */
  wrongCalls = 0
  /** Of those without an answer: the credentials are wrong, or the module is missing. Set an alert on it. */
  misconfigured = 0
  /** How often the circuit breaker opened. */
  breakerOpened = 0
  /** Leases that ended before their work. */
  leasesLost = 0
  /** Releases and settlements that had to be repeated. */
  releasesRetried = 0
  /** How often local limits took a batch. */
  fetches = 0
  /** How much these batches were in all. */
  fetched = 0
  /** How much of that was not spent in time. */
  forgotten = 0
}
