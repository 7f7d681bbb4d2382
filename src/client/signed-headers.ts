import { encodeBase64url } from '../format/base64url.js'
import { encodeHex } from '../format/hex.js'
import { utf8 } from './bytes.js'
import type { ClientSigner } from './signer.js'

/**
 * Headers that authenticate a client: a fresh nonce, signed. Repetitions of one request carry the same. `bound`: text before the
 * nonce in what is signed, for requests that are one action only.
 */
export async function signedHeaders(signer: ClientSigner, bound = ''): Promise<Record<string, string>> {
  const nonce = encodeHex(crypto.getRandomValues(new Uint8Array(16)))
  const signature = await signer.sign(utf8(bound + nonce))
  return {
    'x-nonce': nonce,
    'x-signature': encodeBase64url(signature),
    'x-public-key': encodeBase64url(signer.owner),
    'x-signature-type': String(signer.signatureType),
  }
}
