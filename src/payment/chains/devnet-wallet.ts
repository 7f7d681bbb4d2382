import { createPublicKey, type JsonWebKey } from 'node:crypto'
import { existsSync } from 'node:fs'
import { decodeBase64url } from '../../format/base64url.js'
import { newRsaKey } from '../../proof/new-key.js'
import { normalizedAddress } from '../../proof/owner-address.js'
import { readSmall } from '../../store/folder.js'
import { keptSecret } from '../../store/secret-file.js'

/**
 * The address of a wallet that receives payments on devnet: a JSON Web Key in the file `path`, made with mode 0600 where it is
 * missing. Of 2048 bits, because a larger one takes seconds to make and what it holds is worth nothing.
 */
export async function devnetWallet(path: string): Promise<string> {
  if (!existsSync(path)) {
    const text = JSON.stringify(await newRsaKey(2048))
    keptSecret(path, () => text)
  }
  const { n = '' } = createPublicKey({
    key: JSON.parse(readSmall(path)) as JsonWebKey,
    format: 'jwk',
  }).export({
    format: 'jwk',
  })
  return normalizedAddress(decodeBase64url(n) ?? new Uint8Array(0))
}
