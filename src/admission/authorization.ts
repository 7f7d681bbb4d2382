import { keccak_256 } from '@noble/hashes/sha3.js'
import { recoverSecp256k1 } from '../../native/secp256k1/secp256k1.js'
import { ethereumAddress } from '../proof/ethereum.js'
import type { Usdc } from './usdc.js'

/**
 * A signed permission to move USDC (EIP-3009, TransferWithAuthorization), as clients send it: addresses and nonce in
 * hexadecimal with 0x, numbers in decimal, all canonical.
 */
export interface Authorization {
  readonly from: string
  readonly to: string
  readonly value: string
  /** Seconds; on chain the time must lie strictly between the two. */
  readonly validAfter: string
  readonly validBefore: string
  readonly nonce: string
}

const word = (value: bigint): Uint8Array => Buffer.from(value.toString(16).padStart(64, '0'), 'hex')
const hex = (text: string): Uint8Array => Buffer.from(text.slice(2), 'hex')
const address = (text: string): Uint8Array => Buffer.concat([Buffer.alloc(12), hex(text)])
const hashOf = (text: string): Uint8Array => keccak_256(Buffer.from(text))
const hashAll = (parts: readonly Uint8Array[]): Uint8Array => keccak_256(Buffer.concat(parts))

const domainType = hashOf(
  'EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)',
)
const transferType = hashOf(
  'TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)',
)

/** What the payer signs (EIP-712): 32 bytes. */
export function authorizationDigest(usdc: Usdc, given: Authorization): Uint8Array {
  const domain = hashAll([
    domainType,
    hashOf(usdc.name),
    hashOf(usdc.version),
    word(BigInt(usdc.chainId)),
    address(usdc.address),
  ])
  const struct = hashAll([
    transferType,
    address(given.from),
    address(given.to),
    word(BigInt(given.value)),
    word(BigInt(given.validAfter)),
    word(BigInt(given.validBefore)),
    hex(given.nonce),
  ])
  return hashAll([Uint8Array.of(0x19, 0x01), domain, struct])
}

/** Bytes of r, s and v. */
export const plainSignatureBytes = 65

/**
 * Lower-case address of the key that made a 65-byte signature; undefined where it is none. Signatures with a high s
 * give undefined, because the token's contract refuses them.
 */
export function signerOf(digest: Uint8Array, signature: Uint8Array): string | undefined {
  const last = signature[64] ?? 0
  const recovery = last >= 27 ? last - 27 : last
  if (signature.length !== plainSignatureBytes || recovery > 1) return undefined
  const key = recoverSecp256k1(digest, signature.subarray(0, 64), recovery)
  return key === undefined ? undefined : `0x${Buffer.from(ethereumAddress(key)).toString('hex')}`
}
