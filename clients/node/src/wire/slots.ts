/**
 * The slot of a key in a cluster, and the address of a node: https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/
 */

const SLOTS = 16384
// CRC16 of each byte, polynomial 0x1021.
const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
  return crc
})

/** The slot of a key: of what is between the first `{` and the next `}`, if that is not empty. */
export function slotOf(key: string): number {
  const open = key.indexOf('{')
  const close = open < 0 ? -1 : key.indexOf('}', open + 1)
  const hashed = close > open + 1 ? key.slice(open + 1, close) : key
  let crc = 0
  for (const byte of Buffer.from(hashed)) crc = ((crc << 8) & 0xffff) ^ (TABLE[(crc >> 8) ^ byte] ?? 0)
  return crc % SLOTS
}

/** The parts of `host:port`. The host may be an IPv6 address. */
export function hostAndPort(address: string): { host: string; port: number } {
  const colon = address.lastIndexOf(':')
  return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) }
}
