import type { Bytes } from './bytes.js'

/** Room for the first bytes: few bodies that come in several pieces are shorter. */
const firstBytes = 1024

/**
 * Bytes that come in pieces, one behind the other in one buffer that doubles. It takes at most twice what came. A list of the
 * pieces would take some 260 bytes of memory for each, and their sender decides how many there are.
 */
export class Gathered {
  sizeBytes = 0
  #room: Bytes = new Uint8Array(0)

  /** `announcedBytes`: so many come, by the word of their sender. No room is made for bytes that have not come. */
  constructor(private readonly announcedBytes: number = Number.POSITIVE_INFINITY) {}

  /** Bytes of memory that it has. */
  get roomBytes(): number {
    return this.#room.length
  }

  /** So many it will have with `more` bytes. */
  roomWith(more: number): number {
    const needed = this.sizeBytes + more
    if (needed <= this.#room.length) return this.#room.length
    return Math.max(needed, Math.min(Math.max(firstBytes, 2 * this.#room.length), this.announcedBytes))
  }

  /** Copies a piece. */
  add(piece: Uint8Array): void {
    const roomBytes = this.roomWith(piece.length)
    if (roomBytes > this.#room.length) {
      const room = new Uint8Array(roomBytes)
      room.set(this.bytes())
      this.#room = room
    }
    this.#room.set(piece, this.sizeBytes)
    this.sizeBytes += piece.length
  }

  /** All that came: a view, valid until the next piece. */
  bytes(): Bytes {
    return this.#room.subarray(0, this.sizeBytes)
  }
}
