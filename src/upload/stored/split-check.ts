import { equalBytes, type RunningDigest, runningSha256, sha256 } from '../../proof/digest.js'
import { type RecordDigest, splitOf } from '../../store/segments/segment-record.js'

/** Compares bytes that come in pieces with a digest, whichever of its two forms it has. */
export class SplitCheck {
  readonly #wanted: { readonly frontBytes: number; readonly digest: Uint8Array }
  readonly #front: Uint8Array[] = []
  #frontLeft: number
  readonly #rest: RunningDigest = runningSha256()

  constructor(digest: RecordDigest) {
    this.#wanted = splitOf(digest)
    this.#frontLeft = this.#wanted.frontBytes
  }

  update(bytes: Uint8Array): void {
    const front = bytes.subarray(0, this.#frontLeft)
    if (front.length > 0) this.#front.push(Buffer.from(front))
    this.#frontLeft -= front.length
    this.#rest.update(bytes.subarray(front.length))
  }

  /** After the last byte, once: the digest of what came, in the same form. This or `isRight`. */
  found(): Uint8Array {
    const rest = this.#rest.digest()
    return this.#wanted.frontBytes === 0 ? rest : sha256(...this.#front, rest)
  }

  isRight(): boolean {
    return equalBytes(this.found(), this.#wanted.digest)
  }
}
