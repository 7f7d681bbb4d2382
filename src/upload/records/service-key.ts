import type { JsonWebKey } from 'node:crypto'
import { existsSync } from 'node:fs'
import { newRsaKey } from '../../proof/new-key.js'
import { readSmall } from '../../store/folder.js'
import { keptSecret } from '../../store/secret-file.js'

/** The wallet of the upload service as others may know it. */
export interface ServiceAccount {
  /** RSA modulus, base64url. */
  readonly modulus: string
}

/**
 * The wallet of the service: a JSON Web Key (RSA, 4096 bits) in the file `path`. With `mayMake` a missing file is made, mode
 * 0600. Throws where it is missing or holds no such key.
 */
export async function serviceKey(path: string, mayMake: boolean): Promise<ServiceAccount> {
  if (mayMake && !existsSync(path)) {
    const text = JSON.stringify(await newRsaKey(4096))
    keptSecret(path, () => text)
  }
  const { n = '' } = readServiceKey(path)
  return { modulus: n }
}

/** The private key in a file. Throws where it is no RSA key of 4096 bits; the error does not show what is in the file. */
export function readServiceKey(path: string): JsonWebKey {
  let key: JsonWebKey
  try {
    key = JSON.parse(readSmall(path)) as JsonWebKey
  } catch (error) {
    if (error instanceof SyntaxError) throw new Error(`${path} is no JSON Web Key`)
    throw error
  }
  const size = Buffer.from(key.n ?? '', 'base64url').length
  if (key.kty !== 'RSA' || key.d === undefined || size !== 512) {
    throw new Error(`${path} holds no private RSA key of 4096 bits`)
  }
  return key
}
