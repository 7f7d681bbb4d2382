import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { keccak_256 } from '@noble/hashes/sha3.js'
import * as secp256k1 from '@noble/secp256k1'
import { addonSigner } from '#addon-signer'
import { fromHex, joined, sameBytes, toHex, utf8 } from './bytes.js'

/** Ethereum's part of the client, loaded only where a key or an item of that network is at hand. */

// What the library signs by; of its own it has only WebCrypto's, which is not at once.
secp256k1.hashes.sha256 = sha256
secp256k1.hashes.hmacSha256 = (key, message) => hmac(sha256, key, message)

const keccak = (...parts: Uint8Array[]): Uint8Array => keccak_256(joined(...parts))

/** EIP-191: what is signed of a message. */
export function personalDigest(message: Uint8Array): Uint8Array {
  return keccak(utf8(`\x19Ethereum Signed Message:\n${message.length}`), message)
}

/** 65 bytes r, s, v over 32. */
export function signDigest(digest: Uint8Array, secret: Uint8Array): Uint8Array {
  const signature = secp256k1.sign(digest, secret, { prehash: false, format: 'recovered' })
  return joined(signature.subarray(1), Uint8Array.of(27 + (signature[0] ?? 0)))
}

/**
 * Signs digests, r, s, v: 65 bytes each. By an addon where there is one, which is of constant time and six times as fast; throws
 * where it would sign otherwise than the library does.
 */
export function digestSigner(secret: Uint8Array): (digest: Uint8Array) => Uint8Array {
  // Of a Buffer, `slice` is the same memory, which whoever gave it may wipe.
  const kept = Uint8Array.from(secret)
  const byAddon = addonSigner(kept)
  if (byAddon === undefined) return (digest) => signDigest(digest, kept)
  const signed = (digest: Uint8Array): Uint8Array => {
    const signature = byAddon(digest)
    signature[64] = 27 + (signature[64] ?? 0)
    return signature
  }
  const probe = named('a key signs this once, to be compared')
  if (sameBytes(signed(probe), signDigest(probe, kept))) return signed
  throw new Error('the addon for secp256k1 does not sign as noble does')
}

/** The uncompressed key (65 bytes) of a secret. */
export function evmPublicKey(secret: Uint8Array): Uint8Array {
  return secp256k1.getPublicKey(secret, false)
}

/** The key whose signature r, s, v this is. Throws where it is none. */
export function recoverKey(digest: Uint8Array, signature: Uint8Array): Uint8Array {
  const v = signature[64] ?? 0
  const recovered = joined(Uint8Array.of(v >= 27 ? v - 27 : v), signature.subarray(0, 64))
  const point = secp256k1.recoverPublicKey(recovered, digest, { prehash: false })
  return secp256k1.Point.fromBytes(point).toBytes(false)
}

/** Whether r and s are by this key; a high s, a second form of the same signature, is not. */
export function isSignedBy(key: Uint8Array, digest: Uint8Array, signature: Uint8Array): boolean {
  try {
    return secp256k1.verify(signature.subarray(0, 64), digest, key, { prehash: false, lowS: true })
  } catch (error) {
    if (error instanceof Error) return false
    throw error
  }
}

/** The address of an uncompressed key in mixed case (EIP-55). */
export function evmAddress(key: Uint8Array): string {
  return checksummed(toHex(keccak(key.subarray(1)).subarray(12)))
}

function checksummed(hex: string): string {
  const digits = toHex(keccak(utf8(hex)))
  const chars = [...hex].map((char, at) =>
    Number.parseInt(digits[at] ?? '0', 16) >= 8 ? char.toUpperCase() : char,
  )
  return `0x${chars.join('')}`
}

/** A 20-byte address in a 32-byte word. */
function addressWord(address: string): Uint8Array {
  return joined(new Uint8Array(12), fromHex(address) ?? new Uint8Array(20))
}

function numberWord(value: bigint): Uint8Array {
  return fromHex(value.toString(16).padStart(64, '0')) ?? new Uint8Array(32)
}

const named = (text: string): Uint8Array => keccak(utf8(text))

/** EIP-712 domain of a token. */
export interface TokenDomain {
  readonly name: string
  readonly version: string
  readonly chainId: number
  readonly verifyingContract: string
}

/** EIP-3009: a transfer that its receiver may carry out. Numbers as decimal texts, as they travel. */
export interface TransferAuthorization {
  readonly from: string
  readonly to: string
  readonly value: string
  readonly validAfter: string
  readonly validBefore: string
  /** `0x` and 32 bytes. */
  readonly nonce: string
}

/** The field list of the one type that payments sign, for wallets that hash by themselves. */
export const transferFields = [
  { name: 'from', type: 'address' },
  { name: 'to', type: 'address' },
  { name: 'value', type: 'uint256' },
  { name: 'validAfter', type: 'uint256' },
  { name: 'validBefore', type: 'uint256' },
  { name: 'nonce', type: 'bytes32' },
] as const

/** EIP-712 digest of a transfer under a token's domain. */
export function transferDigest(domain: TokenDomain, transfer: TransferAuthorization): Uint8Array {
  const fields = transferFields.map(({ name, type }) => `${type} ${name}`).join(',')
  const separator = keccak(
    named('EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)'),
    named(domain.name),
    named(domain.version),
    numberWord(BigInt(domain.chainId)),
    addressWord(domain.verifyingContract),
  )
  const struct = keccak(
    named(`TransferWithAuthorization(${fields})`),
    addressWord(transfer.from),
    addressWord(transfer.to),
    numberWord(BigInt(transfer.value)),
    numberWord(BigInt(transfer.validAfter)),
    numberWord(BigInt(transfer.validBefore)),
    fromHex(transfer.nonce) ?? new Uint8Array(32),
  )
  return keccak(Uint8Array.of(0x19, 1), separator, struct)
}

/** Type 7: whether the address spelled by the owner signed the message under the domain `Bundlr` 1. */
export function isTypedBundlr(owner: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  const address = new TextDecoder().decode(owner)
  const separator = keccak(named('EIP712Domain(string name,string version)'), named('Bundlr'), named('1'))
  const type = named('Bundlr(bytes Transaction hash,address address)')
  const struct = keccak(type, keccak(message), addressWord(address))
  const digest = keccak(Uint8Array.of(0x19, 1), separator, struct)
  try {
    const key = recoverKey(digest, signature)
    return sameBytes(keccak(key.subarray(1)).subarray(12), fromHex(address) ?? new Uint8Array(0))
  } catch (error) {
    if (error instanceof Error) return false
    throw error
  }
}
