import { createHash, type Hash, hash } from 'node:crypto'
import type { Cut, DigestPass, Digests } from './digest-pass.js'

/** Each digest by itself, through node:crypto. What lies whole in the given bytes is hashed in one call. */
export class FallbackPass implements DigestPass {
  readonly #whole = createHash('sha256')
  readonly #blocks: Parts
  readonly #pieces: Parts
  readonly #pieceBytes: number
  #bytes = 0

  constructor({ blockBytes, pieceBytes }: Cut) {
    const fits = blockBytes > 0 && blockBytes % 64 === 0 && pieceBytes > 0 && pieceBytes % blockBytes === 0
    if (!fits) throw new RangeError('blocks are of whole chunks, pieces of whole blocks')
    this.#blocks = new Parts('sha256', blockBytes)
    this.#pieces = new Parts('sha1', pieceBytes)
    this.#pieceBytes = pieceBytes
  }

  update(bytes: Uint8Array): void {
    this.#bytes += bytes.length
    this.#whole.update(bytes)
    this.#blocks.update(bytes)
    this.#pieces.update(bytes)
  }

  finish(): Digests {
    const zeros = new Uint8Array((this.#pieceBytes - (this.#bytes % this.#pieceBytes)) % this.#pieceBytes)
    this.#pieces.update(zeros)
    return { whole: this.#whole.digest(), blocks: this.#blocks.finish(), pieces: this.#pieces.finish() }
  }
}

/** One digest after another, each of `partBytes`. */
class Parts {
  readonly #digests: Buffer[] = []
  #open: Hash | undefined
  #openBytes = 0

  constructor(
    private readonly algorithm: string,
    private readonly partBytes: number,
  ) {}

  update(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      const part = bytes.subarray(at, at + this.partBytes - this.#openBytes)
      at += part.length
      if (part.length === this.partBytes) {
        this.#digests.push(hash(this.algorithm, part, 'buffer'))
        continue
      }
      this.#open ??= createHash(this.algorithm)
      this.#open.update(part)
      this.#openBytes += part.length
      if (this.#openBytes === this.partBytes) this.#close()
    }
  }

  finish(): Buffer {
    this.#close()
    return Buffer.concat(this.#digests)
  }

  #close(): void {
    if (this.#open !== undefined) this.#digests.push(this.#open.digest())
    this.#open = undefined
    this.#openBytes = 0
  }
}

/** SHA-256 of each block; the last one may be shorter. */
export function fallbackBlocks(bytes: Uint8Array, blockBytes: number): Buffer {
  if (!(blockBytes > 0 && blockBytes % 64 === 0)) throw new RangeError('blocks are of whole chunks')
  const digests = Buffer.allocUnsafe(Math.ceil(bytes.length / blockBytes) * 32)
  for (let at = 0, to = 0; at < bytes.length; at += blockBytes, to += 32) {
    digests.set(hash('sha256', bytes.subarray(at, at + blockBytes), 'buffer'), to)
  }
  return digests
}
