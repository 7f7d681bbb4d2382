import type { KeyObject } from 'node:crypto'

/** The key that signs answers, and the names a verifier knows it by. */
export interface SigningKey {
  /** Ed25519. Never leaves the thread that signs. */
  readonly privateKey: KeyObject
  /** 32 raw bytes. */
  readonly publicKey: Uint8Array
  /** `ed25519:` and the public key as 43 characters of base64url: all that a verifier needs. */
  readonly keyId: string
  /** Base58 of the public key: the signer's address in the registry. */
  readonly solanaAddress: string
}

export interface KeyPlaces {
  /** PKCS#8 PEM; made with mode 0600 where it is missing. Not used where an observer key is given. */
  readonly keyFile: string
  /** JSON array of 64 integers: seed and public key (the file form of Solana tools). */
  readonly observerKeypairPath?: string
  /** The same 64 bytes in base58. */
  readonly observerPrivateKey?: string
}

/**
 * The signing key. Safe to call on several threads and processes at once: all get the same key. Throws an Error that names
 * the setting at fault, and never shows a secret: the start stops with it.
 */
export function loadSigningKey(_places: KeyPlaces): SigningKey {
  throw new Error('not built yet')
}
