/** The errors of the package. */

/** The base of all errors that this package throws. */
export class RateLimitError extends Error {
  override name = 'RateLimitError'
}

/** A limit, a rate, a duration or an option is wrong. It is thrown before anything is asked. */
export class ConfigurationError extends RateLimitError {
  override name = 'ConfigurationError'
}

/** The server rejected a call, such as by `WRONGTYPE`, `NOPERM` or an unknown command. Nothing was decided. */
export class CallError extends RateLimitError {
  override name = 'CallError'
  /** The first word of the error reply, such as `ERR` or `WRONGTYPE`. */
  readonly code: string

  /**
   * @param command - the command, such as `RL.GCRA`
   * @param reply - the text of the error reply
   * @param node - the server, such as `127.0.0.1:6379`
   */
  constructor(readonly command: string, readonly reply: string, readonly node: string, options?: ErrorOptions) {
    super(`${command} at ${node}: ${reply}`, options)
    this.code = reply.split(' ', 1)[0] ?? ''
  }
}

/** The server did not answer: no connection, too late, or for the moment it cannot. */
export class Unavailable extends RateLimitError {
  override name = 'Unavailable'

  /**
   * @param command - the command, such as `RL.GCRA`
   * @param kind - what happened: `timeout`, `connection`, `crowded`, `breaker`, `maxclients`, `holds`, `module` (it is missing), or the code of a
   * reply, such as `LOADING` or `WRONGPASS`
   * @param reason - the same as a text
   * @param node - the server, such as `127.0.0.1:6379`
   * @param maybeSent - whether the server may still execute the call
   */
  constructor(
    readonly command: string,
    readonly kind: string,
    readonly reason: string,
    readonly node: string,
    readonly maybeSent: boolean,
    options?: ErrorOptions,
  ) {
    super(`${command} at ${node}: ${reason}`, options)
  }
}

/** A call of a limiter that is closed, or that `close` ended. */
export class Closed extends RateLimitError {
  override name = 'Closed'

  constructor(options?: ErrorOptions) {
    super('the limiter is closed', options)
  }
}
