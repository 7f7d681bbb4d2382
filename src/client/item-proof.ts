import { aptosMessage, solanaMessage } from '../proof/wrapped-message.js'
import { isEd25519Signed } from './curve25519.js'
import type { PayloadDigest } from './deep-digest.js'
import { type ItemFields, messageOf } from './item-layout.js'
import { isRsaSigned } from './rsa.js'

/**
 * Whether an item's signature is by its owner, over these fields and this payload. Undefined: a signature type that this client
 * cannot check (6, several Aptos keys).
 */
export async function isOwnersItem(
  fields: ItemFields & { readonly signature: Uint8Array },
  payload: PayloadDigest,
): Promise<boolean | undefined> {
  const message = messageOf(fields, payload)
  const { signatureType, owner, signature } = fields
  switch (signatureType) {
    case 1:
      return isRsaSigned(owner, message, signature)
    case 2:
      return isEd25519Signed(owner, message, signature)
    case 4:
      return isEd25519Signed(owner, solanaMessage(message), signature)
    case 5:
      return isEd25519Signed(owner, aptosMessage(message), signature)
    case 3: {
      const { isSignedBy, ethereumMessage } = await import('./evm.js')
      return isSignedBy(owner, ethereumMessage(message), signature)
    }
    case 7: {
      const { isTypedBundlr } = await import('./evm.js')
      return isTypedBundlr(owner, message, signature)
    }
    default:
      return undefined
  }
}
