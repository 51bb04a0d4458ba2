/** The key of a client's address. */

import { isIP } from 'node:net'
import { IPv6 } from 'ipaddr.js'
import { known, shown } from '../call/arguments.js'
import { integerWord } from '../call/values.js'
import { ConfigurationError } from '../errors.js'

/** What {@link clientAddress} may be told. */
export interface ClientAddressOptions {
  /** How many bits of an IPv6 address are the key, from 1 to 128. 64 by default: a client usually has all addresses of such a network. */
  v6?: number | undefined
}

// Of what is no address, such as a socket's path.
const LONGEST = 64
// The text in brackets, or without a colon, and a port.
const WITH_PORT = /^(?:\[(.*)\]|([^:]*))(?::\d{1,5})?$/

/**
 * The key of a client's address, for a rule such as `{ name: 'address', key: clientAddress, limit: '100/m' }`.
 *
 * IPv4 is itself, also if it is written as IPv6: `203.0.113.7`. Of IPv6 the key is the network: `2001:db8:1:2::/64`. A port and
 * a zone are left out. A text that is no address is its own key, cut at 64 characters.
 *
 * Behind a proxy the address of the connection is the proxy's, so all clients would share one limit. Let the framework take the
 * client's from `X-Forwarded-For`, but only from your own proxy, since clients can send this header too: `trust proxy` of
 * Express, `trustProxy` of Fastify with the proxy's address. Else pass the text that the proxy tells.
 *
 * @param of - a request of Express, Fastify or `node:http`, a context of Hono on `@hono/node-server`, or the text of an address
 * @throws {@link ConfigurationError} if there is no address
 */
export function clientAddress(of: object | string | null | undefined, options: ClientAddressOptions = {}): string {
  const { v6 = 64 } = known('options', options, { v6: true })
  const bits = integerWord('v6', v6, 1, 128)
  const address = addressOf(of)
  const text = typeof address === 'string' ? address.trim() : ''
  if (text === '')
    throw new ConfigurationError(
      `there is no address, but ${shown(address)}: pass its text, or a request that has one. Behind a proxy on a UNIX socket pass the address that the proxy tells`,
    )
  return keyOf(text, bits) ?? keyOf(WITH_PORT.exec(text)?.slice(1).join('') ?? '', bits) ?? [...text].slice(0, LONGEST).join('')
}

type Connected = { socket?: { remoteAddress?: unknown } }

function addressOf(of: unknown): unknown {
  if (typeof of !== 'object' || of === null) return of
  const { ip, socket, env } = of as Connected & { ip?: unknown; env?: { incoming?: Connected } }
  return ip ?? socket?.remoteAddress ?? env?.incoming?.socket?.remoteAddress
}

/** Nothing if the text is no address. */
function keyOf(text: string, bits: string): string | undefined {
  const [address = ''] = text.split('%')
  const version = isIP(address)
  if (version !== 6) return version === 4 ? address : undefined
  // The library takes `::203.0.113.7` for the mapped address.
  const written = address.replace(/^::(?=[\d.]+$)/, '0::')
  const parsed = IPv6.parse(written)
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString()
  return `${IPv6.networkAddressFromCIDR(`${written}/${bits}`).toRFC5952String()}/${bits}`
}
