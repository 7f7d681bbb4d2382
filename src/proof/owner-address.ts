import { ripemd160 } from '@noble/hashes/legacy.js'
import { encodeBase58 } from '../format/base58.js'
import { encodeBase64url } from '../format/base64url.js'
import { encodeBech32 } from '../format/bech32.js'
import { sha256 } from './digest.js'
import { checksumAddress, ethereumAddress } from './ethereum.js'

/**
 * The address of an owner in receipts and queries, for every type alike: base64url SHA-256 of the owner field. The owner of type
 * 7 has many spellings, each with such an address of its own: limits and lists go by `canonicalOwner`.
 */
export function normalizedAddress(owner: Uint8Array): string {
  return encodeBase64url(sha256(owner))
}

/** The owner of type 7 (EIP-712): an address as text. Signatures hold for any letter case of it. */
const typedOwnerShape = /^0x[0-9a-f]{40}$/i

function typedOwner(owner: Uint8Array): string | undefined {
  const text = Buffer.from(owner).toString('latin1')
  return typedOwnerShape.test(text) ? text : undefined
}

/** The address as Ethereum writes it (EIP-55). */
const checksummed = (text: string): string => checksumAddress(Buffer.from(text.slice(2), 'hex'))

/**
 * The one spelling of an owner: small letters for type 7, as most programs write it. Owners of other types, and what is no owner,
 * are as they are: a signature holds for one spelling of these only.
 */
export function canonicalOwner(signatureType: number, owner: Uint8Array): Uint8Array {
  const text = signatureType === 7 ? typedOwner(owner) : undefined
  return text === undefined ? owner : Buffer.from(text.toLowerCase())
}

/** The normalized address by which an owner is counted, whatever its spelling. */
export function canonicalAddress(signatureType: number, owner: Uint8Array): string {
  return normalizedAddress(canonicalOwner(signatureType, owner))
}

/**
 * The normalized address at which an owner may have credits; undefined where it can have none. Of type 7 only the spellings that
 * programs write have one (small letters, and EIP-55): one wallet has few such addresses. The key of type 3 begins with 04: its
 * native address leaves that byte out, so another byte there would be another address for the same wallet.
 */
export function aliasOf(signatureType: number, owner: Uint8Array): string | undefined {
  if (signatureType === 3) return owner[0] === 4 ? normalizedAddress(owner) : undefined
  if (signatureType !== 7) return normalizedAddress(owner)
  const text = typedOwner(owner)
  const isWritten = text !== undefined && (text === text.toLowerCase() || text === checksummed(text))
  return isWritten ? normalizedAddress(owner) : undefined
}

/**
 * All addresses by which a list may name an owner: those of its spellings that programs write, of this spelling, and the one that
 * its own network uses.
 */
function listedNames(signatureType: number, owner: Uint8Array): ReadonlySet<string> {
  const names = new Set([normalizedAddress(owner), canonicalAddress(signatureType, owner)])
  const text = signatureType === 7 ? typedOwner(owner) : undefined
  if (text !== undefined) names.add(normalizedAddress(Buffer.from(checksummed(text))))
  return names.add(nativeAddress(signatureType, owner))
}

/** An address as lists of owners keep it: Ethereum's in EIP-55. Others have one form only. */
export function listedAddress(address: string): string {
  return typedOwnerShape.test(address) ? checksummed(address) : address
}

/** Whether a list (of `listedAddress`) names an owner, by whichever of his addresses and however he spells himself. */
export function isListed(list: ReadonlySet<string>, signatureType: number, owner: Uint8Array): boolean {
  if (list.size === 0) return false
  for (const name of listedNames(signatureType, owner)) if (list.has(name)) return true
  return false
}

/**
 * The address that a key's own network uses for it, and under which it keeps accounts: base58 for types 2 and 4,
 * EIP-55 for 3, and for 7 too, whose owner field is the address already; the normalized address for all others.
 */
export function nativeAddress(signatureType: number, owner: Uint8Array): string {
  if (signatureType === 2 || signatureType === 4) return encodeBase58(owner)
  if (signatureType === 3) return checksumAddress(ethereumAddress(owner))
  if (signatureType === 7) {
    return checksumAddress(Buffer.from(Buffer.from(owner).toString('latin1').slice(2), 'hex'))
  }
  return normalizedAddress(owner)
}

/**
 * The `kyve1...` address of a type-3 key (65 bytes, uncompressed): bech32 of RIPEMD-160 of SHA-256 of the compressed
 * key. Used where the sender names that network; the item's own type says Ethereum.
 */
export function kyveAddress(owner: Uint8Array): string {
  const parity = 2 + ((owner[64] ?? 0) & 1)
  const compressed = Buffer.concat([Uint8Array.of(parity), owner.subarray(1, 33)])
  return encodeBech32('kyve', ripemd160(sha256(compressed)))
}
