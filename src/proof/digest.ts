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

/** A digest that is fed in pieces: `update(bytes)`, then `digest()` once. The bytes may be overwritten once `update` returns. */
export interface RunningDigest {
  update(bytes: Uint8Array): unknown
  digest(): Uint8Array
}

/** A small first piece often is all there is: copied and hashed in one call it costs less than an object for the digest. */
const aloneMaxBytes = 4096

/** Makes an object of node:crypto only where more than one small piece comes. */
class LateDigest implements RunningDigest {
  #first: Uint8Array | undefined
  #running: Hash | undefined

  constructor(private readonly algorithm: 'sha256' | 'sha384') {}

  update(bytes: Uint8Array): void {
    if (bytes.length === 0) return
    if (this.#running === undefined && this.#first === undefined && bytes.length <= aloneMaxBytes) {
      this.#first = Buffer.from(bytes)
      return
    }
    if (this.#running === undefined) {
      this.#running = createHash(this.algorithm)
      if (this.#first !== undefined) this.#running.update(this.#first)
      this.#first = undefined
    }
    this.#running.update(bytes)
  }

  digest(): Uint8Array {
    if (this.#running !== undefined) return this.#running.digest()
    return this.algorithm === 'sha256' ? sha256(this.#first ?? none) : sha384(this.#first ?? none)
  }
}

const none = new Uint8Array(0)

/** A SHA-256 that is fed in pieces. */
export function runningSha256(): RunningDigest {
  return new LateDigest('sha256')
}

/** A SHA-384 that is fed in pieces. */
export function runningSha384(): RunningDigest {
  return new LateDigest('sha384')
}

/** Whether two digests are equal. Digests of public bytes are no secrets, so the time taken may depend on them. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && Buffer.compare(a, b) === 0
}
