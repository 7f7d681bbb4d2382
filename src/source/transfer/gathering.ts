import { PieceList } from '../../format/piece-list.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { sha256 } from '../../proof/digest.js'
import type { TransferTarget } from './transfer-target.js'

/** Bytes that all gatherings of this thread may hold: beyond, what comes goes into files. */
const heldMaxBytes = 64 * 1024 * 1024

let held = 0

const endedEarly = refuse('upstream', 'upstream', 'the body ended early')

/** A small payload on its way into a segment: in memory until it is whole and judged. */
export class Gathering {
  readonly #pieces = new PieceList()
  readonly #sizeBytes: number
  #release: (() => void) | undefined

  /**
   * Takes its bytes from those that may be held: `close` gives them back. `isLasting`: pieces stay as they are; else whoever
   * gives one may use its memory again, and it is copied.
   */
  constructor(
    sizeBytes: number,
    private readonly isLasting = false,
  ) {
    this.#sizeBytes = sizeBytes
    held += sizeBytes
  }

  /** Whether there is memory for another one of so many bytes. */
  static hasRoom(sizeBytes: number): boolean {
    return held + sizeBytes <= heldMaxBytes
  }

  get taken(): number {
    return this.#pieces.sizeBytes
  }

  get parts(): readonly Uint8Array[] {
    return this.#pieces.pieces
  }

  write(bytes: Uint8Array): undefined {
    this.#pieces.add(this.isLasting ? bytes : new Uint8Array(bytes))
    return undefined
  }

  /** Takes all of a body that can come at once; undefined where it cannot. A refusal: it broke, or has another size. */
  fill({ found, body }: Pick<TransferTarget, 'found' | 'body'>): Promise<Refusal | undefined> | undefined {
    if (found.collect === undefined || body !== found.body) return undefined
    this.#release = found.release
    return found.collect(this.#sizeBytes).then((all) => {
      if (isRefusal(all)) return all
      for (const piece of all) this.write(piece)
      return this.taken < this.#sizeBytes ? endedEarly : undefined
    })
  }

  /** There is nothing to wait for. */
  drain(): undefined {
    return undefined
  }

  /** SHA-256 of what was written: in memory of its own, because what is sent to another thread takes all of its memory along. */
  digest(): Uint8Array {
    return new Uint8Array(sha256(...this.parts))
  }

  /** Nothing of it may be read any more. */
  close(): void {
    held -= this.#sizeBytes
    this.#release?.()
  }
}
