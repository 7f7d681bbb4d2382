import { recoverSecp256k1 } from '../../native/secp256k1/secp256k1.js'
import { ethereumMessage, typedBundlrDigest } from './ethereum.js'
import type { Signed } from './signature-verifiers.js'
import { isSmallOrder } from './small-order.js'

/**
 * Signatures of which anybody can change some bytes so that they hold still. An item is named by SHA-256 of its signature: each
 * form is another id of the same signed content. Where an item moves money, only one form of it may count.
 */

const first = 27
const slots = 32
const slotBytes = 64
const keyBytes = 32

/** The last byte is 27 or 28, whichever recovers the key (type 3) or the address (type 7). */
function isRecovering(
  digest: Uint8Array,
  signature: Uint8Array,
  isKey: (key: Uint8Array) => boolean,
): boolean {
  const v = signature[slotBytes] ?? 0
  if (v !== first && v !== first + 1) return false
  const key = recoverSecp256k1(digest, signature.subarray(0, slotBytes), v - first)
  return key !== undefined && isKey(key)
}

/** Just as many keys have signed as the threshold says, all keys differ, and slots without a signature are zero. */
function isBareMultiple({ owner, signature }: Signed): boolean {
  const keys = new Set<string>()
  let signers = 0
  for (let slot = 0; slot < slots; slot++) {
    const key = owner.subarray(slot * keyBytes, (slot + 1) * keyBytes)
    const isEmptyKey = isSmallOrder(key)
    const name = Buffer.from(key).toString('hex')
    if (!isEmptyKey && keys.has(name)) return false
    keys.add(name)
    const isSet = ((signature[slots * slotBytes + (slot >> 3)] ?? 0) & (0x80 >> (slot & 7))) !== 0
    if (isSet) signers++
    else if (signature.subarray(slot * slotBytes, (slot + 1) * slotBytes).some((byte) => byte !== 0))
      return false
  }
  return signers === owner[slots * keyBytes]
}

/**
 * Whether a signature that holds (`verifySignature`) is the one form of itself that only its owner could make. RSA-PSS and
 * Ed25519 have no other form; of secp256k1 high s are refused everywhere already.
 */
export function isOnlyForm(type: number, signed: Signed): boolean {
  const { owner, message, signature } = signed
  if (type === 3)
    return isRecovering(ethereumMessage(message), signature, (key) => Buffer.compare(key, owner) === 0)
  if (type === 7) {
    const address = Buffer.from(Buffer.from(owner).toString('latin1').slice(2), 'hex')
    // The verification has found by this byte that the key is the owner's.
    return isRecovering(typedBundlrDigest(message, address), signature, () => true)
  }
  return type === 6 ? isBareMultiple(signed) : true
}
