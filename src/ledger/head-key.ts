import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { keptSecret } from '../store/secret-file.js'
import { headMessage } from './port.js'

/** The Ed25519 key that signs heads of the chain. */
export interface HeadKey {
  readonly publicKey: KeyObject
  /** base64url. */
  sign(sequence: number, head: string, timeMs: number): string
}

/** Reads the key (PKCS#8 PEM, mode 0600), or makes one where the file is missing. Throws where it is no key. */
export function headKey(path: string): HeadKey {
  const pem = keptSecret(path, () => {
    const { privateKey } = generateKeyPairSync('ed25519')
    return privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
  })
  const key = createPrivateKey(pem)
  return {
    publicKey: createPublicKey(key),
    sign: (sequence, head, timeMs) =>
      sign(null, headMessage(sequence, head, timeMs), key).toString('base64url'),
  }
}
