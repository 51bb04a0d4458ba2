/** A choice for when there is no answer: each process admits its share of the limit. */

import { ConfigurationError } from '../errors.js'
import { known, shown, type Names } from './arguments.js'
import { integerWord } from './values.js'

/** What may be said of a {@link Share}. */
export interface ShareOptions {
  /** How many processes ask the limits. With more than this they admit more than the limit. */
  processes: number
  /**
   * What leases, load shedding, policies, and the limiters `Calendar`, `Penalty` and `Smooth` decide, which have no rate to
   * share. Without it they are an error.
   */
  otherwise?: 'open' | 'closed' | undefined
}

const NAMES: Names<ShareOptions> = { processes: true, otherwise: true }

/** Lets each process admit its share of a limit while the server does not answer. */
export class Share {
  readonly processes: number
  readonly otherwise: 'open' | 'closed' | undefined

  /** @throws {@link ConfigurationError} if an option is wrong */
  constructor(options: ShareOptions) {
    const { processes, otherwise } = known('options', options, NAMES, ['processes'])
    integerWord('processes', processes, 1)
    if (otherwise !== undefined && otherwise !== 'open' && otherwise !== 'closed')
      throw new ConfigurationError(`otherwise must be 'open' or 'closed', not ${shown(otherwise)}`)
    this.processes = processes
    this.otherwise = otherwise
    Object.freeze(this)
  }
}
