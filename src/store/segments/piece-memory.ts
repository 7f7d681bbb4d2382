/** As much as comes from a socket at once. */
export const pieceRoomBytes = 65_536
/** What is kept for later: 4 MiB, enough for forty items of 100 KiB that come side by side. */
const keptMax = 64

/**
 * Memory for bodies while they come, used again: of fresh memory the system makes each page when it is first written, which takes
 * longer than the copy itself.
 */
export class PieceMemory {
  readonly #free: Buffer[] = []

  take(): Buffer {
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(pieceRoomBytes)
  }

  /** Nobody may use them any more. */
  giveBack(rooms: readonly Buffer[]): void {
    for (const room of rooms) if (this.#free.length < keptMax) this.#free.push(room)
  }
}

/** Smaller ones share memory of Node's. */
const smallBytes = 4096

/** The bytes of one body, in the order in which they came. */
export class HeldPieces {
  #pieces: Uint8Array[] = []
  #rooms: Buffer[] = []
  /** Bytes of the last room that are taken. */
  #taken = pieceRoomBytes

  constructor(private readonly memory: PieceMemory) {}

  /** Copies the bytes. */
  add(bytes: Uint8Array): void {
    if (bytes.length <= smallBytes && this.#rooms.length === 0) {
      this.#pieces.push(Buffer.from(bytes))
      return
    }
    for (let at = 0; at < bytes.length; ) {
      if (this.#taken === pieceRoomBytes) {
        this.#rooms.push(this.memory.take())
        this.#taken = 0
      }
      const part = bytes.subarray(at, at + pieceRoomBytes - this.#taken)
      const room = this.#rooms.at(-1) as Buffer
      room.set(part, this.#taken)
      this.#pieces.push(room.subarray(this.#taken, this.#taken + part.length))
      this.#taken += part.length
      at += part.length
    }
  }

  /** Gives all bytes to `use`, which may not keep them, and holds nothing afterwards. */
  release<T>(use: (pieces: readonly Uint8Array[]) => T): T {
    try {
      return use(this.#pieces)
    } finally {
      this.memory.giveBack(this.#rooms)
      this.#pieces = []
      this.#rooms = []
      this.#taken = pieceRoomBytes
    }
  }
}
