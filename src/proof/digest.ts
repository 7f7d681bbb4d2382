import { createHash, type Hash, hash } from 'node:crypto'
import { sha256Of } from '../../native/digest/digest.js'

/** SHA-256 of the given bytes, one behind the other: 32 bytes. */
export function sha256(...parts: readonly Uint8Array[]): Uint8Array {
  const [only] = parts
  return parts.length === 1 && only !== undefined ? sha256Of(only) : digest('sha256', parts)
}

/** SHA-384 of the given bytes, one behind the other: 48 bytes. */
export function sha384(...parts: readonly Uint8Array[]): Uint8Array {
  return digest('sha384', parts)
}

/** The one-shot call is faster for a single part: it makes no object. */
function digest(algorithm: string, parts: readonly Uint8Array[]): Uint8Array {
  if (parts.length === 1 && parts[0] !== undefined) return hash(algorithm, parts[0], 'buffer')
  const running = createHash(algorithm)
  for (const part of parts) running.update(part)
  return running.digest()
}

/** A SHA-256 that is fed in pieces: `update(bytes)`, then `digest()` once. */
export function runningSha256(): Hash {
  return createHash('sha256')
}

/** A SHA-384 that is fed in pieces. */
export function runningSha384(): Hash {
  return createHash('sha384')
}

/** Whether two digests are equal. Digests of public bytes are no secrets, so the time taken may depend on them. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && Buffer.compare(a, b) === 0
}
