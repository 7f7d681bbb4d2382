import { randomBytes } from 'node:crypto'
import { ed25519Signer, type ItemSigner } from '../../proof/sign.js'
import { keptSecret } from '../../store/secret-file.js'

const seedBytes = 32

/**
 * The key that signs items of uploaders who do not sign: an Ed25519 seed (32 bytes, base64url) in the file `path`, made with mode
 * 0600 where it is missing. It has no other use and owns nothing. Orders in the tags of such an item are therefore in its name,
 * never in that of the wallet that pays for bundles and signs receipts. Throws the system's error, or an Error that names the
 * file.
 */
export function itemKey(path: string): ItemSigner {
  const text = keptSecret(path, newItemKey)
  const seed = Buffer.from(text, 'base64url')
  if (seed.length !== seedBytes) throw new Error(`${path} holds no seed of ${seedBytes} bytes`)
  return ed25519Signer(seed)
}

/** What such a file holds. */
export function newItemKey(): string {
  return randomBytes(seedBytes).toString('base64url')
}
