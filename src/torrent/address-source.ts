import { addressBytes } from './compact-peers.js'

/** The source that an address is counted under: of IPv6 its /64, since one machine may use all addresses of a /64. */
export function sourceOf(address: string): string {
  const bytes = addressBytes(address)
  if (bytes === undefined) return address
  return bytes.length === 16 ? bytes.toString('hex', 0, 8) : bytes.join('.')
}
