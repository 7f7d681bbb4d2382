import { createRequire } from 'node:module'

type Library = typeof import('@noble/curves/secp256k1.js')

let library: Library | undefined

/**
 * The curve of Ethereum's keys by noble: for signing and checking without the addon. It is loaded with the first signature
 * that needs it, because it takes 2 to 4 MB of each thread. `require` and not `import()`: verifiers answer at once.
 */
export function nobleSecp256k1(): Library['secp256k1'] {
  // Not where this file is loaded: in a bundle of CommonJS it has no place, and the client is of use without this.
  library ??= createRequire(import.meta.url)('@noble/curves/secp256k1.js') as Library
  return library.secp256k1
}

/** Undefined where `act` finds that these bytes are none: the library throws then. */
function unlessNone<Result>(act: () => Result): Result | undefined {
  try {
    return act()
  } catch (error) {
    if (error instanceof Error) return undefined
    throw error
  }
}

/** Whether this is a point of the curve, uncompressed: 65 bytes. */
export function isSecp256k1KeyByFallback(key: Uint8Array): boolean {
  if (key.length !== 65 || key[0] !== 4) return false
  return unlessNone(() => nobleSecp256k1().Point.fromBytes(key)) !== undefined
}

/** As `verifySecp256k1`. */
export function verifySecp256k1ByFallback(
  key: Uint8Array,
  digest: Uint8Array,
  signature: Uint8Array,
): boolean {
  const options = { prehash: false, lowS: true }
  return (
    isSecp256k1KeyByFallback(key) &&
    unlessNone(() => nobleSecp256k1().verify(signature, digest, key, options)) === true
  )
}

/** As `recoverSecp256k1`. */
export function recoverSecp256k1ByFallback(
  digest: Uint8Array,
  signature: Uint8Array,
  recovery: number,
): Uint8Array | undefined {
  return unlessNone(() => {
    const found = nobleSecp256k1().Signature.fromBytes(signature, 'compact')
    if (found.hasHighS()) return undefined
    return found.addRecoveryBit(recovery).recoverPublicKey(digest).toBytes(false)
  })
}

/** As a signer of `secp256k1SignerOf`. */
export function signSecp256k1ByFallback(secret: Uint8Array, digest: Uint8Array): Uint8Array {
  const signed = nobleSecp256k1().sign(digest, secret, { prehash: false, format: 'recovered' })
  const signature = new Uint8Array(signed.length)
  signature.set(signed.subarray(1))
  signature[64] = signed[0] ?? 0
  return signature
}
