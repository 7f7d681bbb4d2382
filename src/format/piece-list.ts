/** A piece below this is copied behind the one before, */
const smallBytes = 4096
/** into rooms of this size. */
const roomBytes = 16_384

/**
 * Pieces of a body that wait, in their order, without a copy where they are large. Small ones are copied behind each other: their
 * sender decides how many there are, and each would take some 260 bytes of memory.
 */
export class PieceList {
  sizeBytes = 0
  readonly #pieces: Uint8Array[] = []
  /** Its used part is the last of the pieces. */
  #room: Uint8Array | undefined
  #used = 0

  /** Not to be changed. */
  get pieces(): readonly Uint8Array[] {
    return this.#pieces
  }

  /** Adds a piece. False: it was copied, and its memory is free. */
  add(piece: Uint8Array): boolean {
    this.sizeBytes += piece.length
    if (piece.length >= smallBytes || this.#pieces.length === 0) {
      this.#room = undefined
      this.#pieces.push(piece)
      return true
    }
    if (this.#room === undefined || this.#used + piece.length > roomBytes) {
      this.#room = new Uint8Array(roomBytes)
      this.#used = 0
    } else this.#pieces.pop()
    this.#room.set(piece, this.#used)
    this.#used += piece.length
    this.#pieces.push(this.#room.subarray(0, this.#used))
    return false
  }

  /** The first of them. It stays as it is. */
  shift(): Uint8Array | undefined {
    const piece = this.#pieces.shift()
    this.sizeBytes -= piece?.length ?? 0
    if (this.#pieces.length === 0) this.#room = undefined
    return piece
  }

  clear(): void {
    this.#pieces.length = 0
    this.#room = undefined
    this.sizeBytes = 0
  }
}
