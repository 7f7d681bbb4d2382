import { randomBytes } from 'node:crypto'
import { addressBytes } from './compact-peers.js'
import { nodeIdBytes } from './krpc.js'

/** Bits of an address that its nodes' ids depend on. */
const masks = {
  4: Buffer.from('030f3fff', 'hex'),
  16: Buffer.from('0103070f1f3f7fff', 'hex'),
} as const

/** CRC-32 with the polynomial of Castagnoli, RFC 3720. */
function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ ((crc & 1) === 0 ? 0 : 0x82f63b78)
  }
  return (crc ^ 0xffffffff) >>> 0
}

/**
 * An id for a node at an address by BEP 42, which keeps nodes from choosing an id next to a torrent's infohash. Where the
 * address is not known it is random. `random`: 20 bytes.
 */
export function nodeId(address: string | undefined, random = randomBytes(nodeIdBytes)): Buffer {
  const id = Buffer.from(random)
  const bytes = address === undefined ? undefined : addressBytes(address)
  if (bytes === undefined) return id
  const mask = bytes.length === 4 ? masks[4] : masks[16]
  const masked = Buffer.from(mask.map((byte, at) => byte & bytes[at]!))
  masked[0]! |= (id[19]! & 7) << 5
  const crc = crc32c(masked)
  id.writeUInt16BE(crc >>> 16, 0)
  id[2] = ((crc >>> 8) & 0xf8) | (id[2]! & 7)
  return id
}
