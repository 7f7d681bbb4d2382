import { keccak_256 } from '@noble/hashes/sha3.js'
import { joined, utf8 } from '../format/bytes.js'
import { encodeHex } from '../format/hex.js'

/** Ethereum's ways to turn a message into 32 bytes to sign, and a key into an address. */

/** Keccak-256 of all parts together. */
export const keccak = (...parts: readonly Uint8Array[]): Uint8Array => keccak_256(joined(...parts))

/** EIP-191: Keccak-256 of the standard prefix and the message. */
export function ethereumMessage(message: Uint8Array): Uint8Array {
  return keccak(utf8(`\x19Ethereum Signed Message:\n${message.length}`), message)
}

/** The 20 bytes of an address: the end of Keccak-256 over X and Y of the uncompressed key (65 bytes, prefix 04). */
export function ethereumAddress(publicKey: Uint8Array): Uint8Array {
  return keccak_256(publicKey.subarray(1)).subarray(12)
}

/** The mixed-case spelling of an address (EIP-55). */
export function checksumAddress(address: Uint8Array): string {
  const hex = encodeHex(address)
  const digits = encodeHex(keccak_256(utf8(hex)))
  return `0x${[...hex].map((char, i) => (Number.parseInt(digits[i] ?? '0', 16) >= 8 ? char.toUpperCase() : char)).join('')}`
}

const text = (value: string) => keccak_256(utf8(value))

/** EIP-712 domain { name: "Bundlr", version: "1" }, no chain. */
const domainSeparator = keccak(text('EIP712Domain(string name,string version)'), text('Bundlr'), text('1'))
/** The first field's name has a space in it. */
const typeHash = text('Bundlr(bytes Transaction hash,address address)')

/** What a type-7 item signs (EIP-712): the message as bytes and the signer's address, under the domain above. */
export function typedBundlrDigest(message: Uint8Array, address: Uint8Array): Uint8Array {
  const struct = keccak(typeHash, keccak_256(message), new Uint8Array(12), address)
  return keccak(Uint8Array.of(0x19, 0x01), domainSeparator, struct)
}
