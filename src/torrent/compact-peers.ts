import { BlockList, isIPv4, isIPv6 } from 'node:net'
import type { Bencoded } from './bencode.js'

/** Where a peer listens. */
export interface PeerAddress {
  readonly host: string
  readonly port: number
}

/** 4 bytes of IPv4, or 16 of IPv6; undefined for what is no address. An IPv4-mapped IPv6 address gives 4 bytes. */
export function addressBytes(host: string): Buffer | undefined {
  if (isIPv4(host)) return Buffer.from(host.split('.').map(Number))
  if (!isIPv6(host)) return undefined
  const bare = host.split('%')[0] ?? ''
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(bare)?.[1]
  if (mapped !== undefined) return addressBytes(mapped)
  // The URL parser spells every form of an IPv6 address the same way: groups of hex digits.
  const spelt = new URL(`http://[${bare}]`).hostname.slice(1, -1)
  const [left = '', right] = spelt.split('::')
  const groups = (text: string | undefined): number[] => {
    return text === undefined || text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16))
  }
  const [first, last] = [groups(left), groups(right)]
  const all = [...first, ...new Array<number>(8 - first.length - last.length).fill(0), ...last]
  const bytes = Buffer.alloc(16)
  for (const [index, group] of all.entries()) bytes.writeUInt16BE(group, index * 2)
  return bytes
}

/** Compact forms of BEP 23 (6 bytes each) and BEP 7 (18 bytes each). */
export function encodePeers(peers: readonly PeerAddress[]): { readonly v4: Buffer; readonly v6: Buffer } {
  const parts: { v4: Buffer[]; v6: Buffer[] } = { v4: [], v6: [] }
  for (const { host, port } of peers) {
    const address = addressBytes(host)
    if (address === undefined) continue
    const both = Buffer.from([...address, port >> 8, port & 255])
    parts[address.length === 4 ? 'v4' : 'v6'].push(both)
  }
  return { v4: Buffer.concat(parts.v4), v6: Buffer.concat(parts.v6) }
}

/** Reads them; at most `max` of each, and none without a port. */
export function decodePeers(
  v4: Bencoded | undefined,
  v6: Bencoded | undefined,
  max: number,
): readonly PeerAddress[] {
  return [...decodeKind(v4, 4, max), ...decodeKind(v6, 16, max)]
}

function decodeKind(given: Bencoded | undefined, addressLength: number, max: number): PeerAddress[] {
  if (!(given instanceof Uint8Array)) return []
  const bytes = Buffer.from(given.buffer, given.byteOffset, given.length)
  const found: PeerAddress[] = []
  const step = addressLength + 2
  for (let at = 0; at + step <= bytes.length && found.length < max; at += step) {
    const port = bytes.readUInt16BE(at + addressLength)
    if (port === 0) continue
    const address = bytes.subarray(at, at + addressLength)
    found.push({ host: addressLength === 4 ? address.join('.') : spellV6(address), port })
  }
  return found
}

function spellV6(address: Buffer): string {
  const groups = Array.from({ length: 8 }, (_, index) => address.readUInt16BE(index * 2).toString(16))
  return groups.join(':')
}

const nearAddresses = new BlockList()
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['224.0.0.0', 3],
] as const) {
  nearAddresses.addSubnet(network, prefix, 'ipv4')
}
for (const [network, prefix] of [
  ['::', 127],
  ['64:ff9b::', 96],
  ['64:ff9b:1::', 48],
  ['100::', 64],
  // Teredo and 6to4 (RFC 7526): an address of IPv4 lies within, which may be near.
  ['2001::', 32],
  ['2002::', 16],
  ['fc00::', 7],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
] as const) {
  nearAddresses.addSubnet(network, prefix, 'ipv6')
}

/** Whether a host is this machine, in a private network, or not a unicast address. Host names are taken to be public. */
export function isNearAddress(host: string): boolean {
  if (/(?:^|\.)localhost\.?$/i.test(host)) return true
  const bytes = addressBytes(host.replace(/^\[|\]$/g, ''))
  if (bytes === undefined) return false
  const text = bytes.length === 4 ? bytes.join('.') : spellV6(bytes)
  return nearAddresses.check(text, bytes.length === 4 ? 'ipv4' : 'ipv6')
}
