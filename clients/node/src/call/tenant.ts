/** Tenants, which share a limit fairly. */

import type { Names } from './arguments.js'
import { ConfigurationError } from '../errors.js'
import { integerWord, textWord } from './values.js'

/** Who shares a limit fairly with others: a lease, or calls that wait. */
export interface TenantOptions {
  /** The tenant of the caller, of 1 to 256 bytes. Tenants take turns, by their weights. */
  tenant?: string | undefined
  /** The weight of the tenant, from 1 to 1,000. Without it the tenant keeps its weight, which is 1 at first. */
  weight?: number | undefined
}

/** The names of {@link TenantOptions}. */
export const OF_TENANT: Names<TenantOptions> = { tenant: true, weight: true }

/** The words of a tenant. */
export function tenantWords({ tenant, weight }: TenantOptions): readonly string[] {
  if (tenant === undefined && weight !== undefined) throw new ConfigurationError('weight needs a tenant')
  if (tenant === undefined) return []
  const words = ['TENANT', textWord('tenant', tenant, 256)]
  return weight === undefined ? words : [...words, 'WEIGHT', integerWord('weight', weight, 1, 1000)]
}
