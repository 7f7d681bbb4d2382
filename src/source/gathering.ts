/** Bytes that all gatherings of this thread may hold: beyond, what comes goes into files. */
const heldMaxBytes = 64 * 1024 * 1024

let held = 0

/** A small payload on its way into a segment: in memory until it is whole and judged. */
export class Gathering {
  readonly parts: Uint8Array[] = []
  #written = 0
  readonly #sizeBytes: number

  /** Takes its bytes from those that may be held: `close` gives them back. */
  constructor(sizeBytes: number) {
    this.#sizeBytes = sizeBytes
    held += sizeBytes
  }

  /** Whether there is memory for another one of so many bytes. */
  static hasRoom(sizeBytes: number): boolean {
    return held + sizeBytes <= heldMaxBytes
  }

  get written(): number {
    return this.#written
  }

  write(bytes: Uint8Array): undefined {
    // Whoever gives a piece may use its memory again.
    this.parts.push(new Uint8Array(bytes))
    this.#written += bytes.length
    return undefined
  }

  close(): void {
    held -= this.#sizeBytes
  }
}
