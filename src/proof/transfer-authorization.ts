import { joined, utf8 } from '../format/bytes.js'
import { decodeHex } from '../format/hex.js'
import { keccak } from './ethereum.js'

/** EIP-712 domain of a token. */
export interface TokenDomain {
  readonly name: string
  readonly version: string
  readonly chainId: number
  readonly verifyingContract: string
}

/**
 * A signed permission to move USDC (EIP-3009, TransferWithAuthorization), as it travels: addresses and nonce (32 bytes) in
 * hexadecimal with 0x, numbers in decimal, all canonical.
 */
export interface TransferAuthorization {
  readonly from: string
  readonly to: string
  readonly value: string
  /** Seconds; on chain the time must lie strictly between the two. */
  readonly validAfter: string
  readonly validBefore: string
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

const named = (text: string): Uint8Array => keccak(utf8(text))

const domainType = named('EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)')
const transferType = named(
  `TransferWithAuthorization(${transferFields.map(({ name, type }) => `${type} ${name}`).join(',')})`,
)

/** A 20-byte address in a 32-byte word. */
function addressWord(address: string): Uint8Array {
  return joined(new Uint8Array(12), decodeHex(address) ?? new Uint8Array(20))
}

function numberWord(value: bigint): Uint8Array {
  return decodeHex(value.toString(16).padStart(64, '0')) ?? new Uint8Array(32)
}

/** What the payer signs (EIP-712): 32 bytes. */
export function transferDigest(domain: TokenDomain, transfer: TransferAuthorization): Uint8Array {
  const separator = keccak(
    domainType,
    named(domain.name),
    named(domain.version),
    numberWord(BigInt(domain.chainId)),
    addressWord(domain.verifyingContract),
  )
  const struct = keccak(
    transferType,
    addressWord(transfer.from),
    addressWord(transfer.to),
    numberWord(BigInt(transfer.value)),
    numberWord(BigInt(transfer.validAfter)),
    numberWord(BigInt(transfer.validBefore)),
    decodeHex(transfer.nonce) ?? new Uint8Array(32),
  )
  return keccak(Uint8Array.of(0x19, 0x01), separator, struct)
}
