import { sign } from 'node:crypto'
import { decodeBase58, encodeBase58 } from '../../format/base58.js'
import { sha256 } from '../../proof/digest.js'
import { newEd25519Key } from '../../proof/new-key.js'
import { verifySignature } from '../../proof/signature-verifiers.js'

/**
 * A change of a name for the owner's wallet to sign: a Solana transaction (its documentation, "Transactions", version 0). Its one
 * instruction is a memo with the change. The transaction is sent nowhere, because the registry of this machine is no chain. Its
 * fee payer is a key made for this one signature, because wallets and clients expect to sign second.
 */
export interface OwnerTransaction {
  /** Base64. */
  readonly transaction: string
  /** Base58. */
  readonly feePayer: string
  /** From then on it is not taken. */
  readonly expiresMs: number
}

const memoProgram = decodeBase58('MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr') ?? new Uint8Array(0)
const keyBytes = 32
const signatureBytes = 64
/** Whole transactions have at most 1232 bytes; clients refuse to write longer ones. */
const memoMax = 600

/** The key of an address of Solana; undefined where it is none. */
export function solanaKey(address: string): Uint8Array | undefined {
  const key = decodeBase58(address)
  return key?.length === keyBytes ? key : undefined
}

/** `text`: what is done. A long one is named by its SHA-256. Throws where the owner has no address of Solana. */
export function ownerTransaction(
  owner: string,
  text: string,
  nonce: string,
  expiresMs: number,
): OwnerTransaction {
  const key = solanaKey(owner)
  if (key === undefined) throw new Error(`${owner} is no address of Solana`)
  const { publicKey: payer, privateKey } = newEd25519Key()
  const whole = Buffer.from(`${text}\n${nonce}`)
  const memo =
    whole.length <= memoMax ? whole : Buffer.from(`sha256 ${Buffer.from(sha256(whole)).toString('hex')}`)
  const message = Buffer.concat([
    // Version 0; two sign, the second one and the program are only read.
    Uint8Array.of(0x80, 2, 1, 1),
    Uint8Array.of(3),
    payer,
    key,
    memoProgram,
    sha256(Buffer.from(nonce)),
    // One instruction: program 2, with account 1; no tables of addresses.
    Uint8Array.of(1, 2, 1, 1),
    shortLength(memo.length),
    memo,
    Uint8Array.of(0),
  ])
  const signed = [Uint8Array.of(2), sign(null, message, privateKey), Buffer.alloc(signatureBytes), message]
  return {
    transaction: Buffer.concat(signed).toString('base64'),
    feePayer: encodeBase58(payer),
    expiresMs,
  }
}

/** True where `given` is the prepared transaction with the owner's signature in its second place. Both are base64. */
export function isSignedBy(owner: string, prepared: string, given: string): boolean {
  const [wanted, bytes] = [Buffer.from(prepared, 'base64'), Buffer.from(given, 'base64')]
  const key = solanaKey(owner)
  const start = 1 + 2 * signatureBytes
  const message = bytes.subarray(start)
  if (key === undefined || !message.equals(wanted.subarray(start))) return false
  const signature = bytes.subarray(1 + signatureBytes, start)
  return verifySignature(2, { owner: key, message, signature }) === true
}

/** A length as Solana writes it: 7 bits a byte, the lowest first. */
function shortLength(length: number): Uint8Array {
  return length < 0x80 ? Uint8Array.of(length) : Uint8Array.of((length & 0x7f) | 0x80, length >> 7)
}
