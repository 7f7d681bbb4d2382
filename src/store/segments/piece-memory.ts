import { Gathered } from '../../format/gathered.js'

/** Bytes of one room: as much as comes from a socket at once. */
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

/** A body that comes at once and is no larger shares memory of Node's. */
const smallBytes = 4096
/** One that comes in small pieces gets a room behind so many. */
const gatheredMaxBytes = 16_384

/** The bytes of one body, in the order in which they came. However small its pieces are, it takes little more than its bytes. */
export class HeldPieces {
  /** All that came, while that is little and came at once. */
  #small: Buffer | undefined
  /** All that came, while that is little and came in pieces. */
  #gathered: Gathered | undefined
  #rooms: Buffer[] = []
  /** Bytes of the last room that are taken. */
  #taken = pieceRoomBytes

  constructor(private readonly memory: PieceMemory) {}

  /** What it takes of memory. */
  get memoryBytes(): number {
    return (this.#small?.length ?? 0) + (this.#gathered?.roomBytes ?? 0) + this.#rooms.length * pieceRoomBytes
  }

  /** Copies the bytes. */
  add(bytes: Uint8Array): void {
    if (this.#rooms.length === 0 && this.#takesLittle(bytes)) return
    const before = this.#small ?? this.#gathered?.bytes()
    this.#small = this.#gathered = undefined
    if (before !== undefined) this.#copy(before)
    this.#copy(bytes)
  }

  #takesLittle(bytes: Uint8Array): boolean {
    const small = this.#small
    if (small === undefined && this.#gathered === undefined) {
      if (bytes.length > smallBytes) return false
      this.#small = Buffer.from(bytes)
      return true
    }
    if ((small?.length ?? this.#gathered?.sizeBytes ?? 0) + bytes.length > gatheredMaxBytes) return false
    this.#gathered ??= new Gathered(gatheredMaxBytes)
    if (small !== undefined) this.#gathered.add(small)
    this.#small = undefined
    this.#gathered.add(bytes)
    return true
  }

  #copy(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      if (this.#taken === pieceRoomBytes) {
        this.#rooms.push(this.memory.take())
        this.#taken = 0
      }
      const part = bytes.subarray(at, at + pieceRoomBytes - this.#taken)
      this.#rooms.at(-1)?.set(part, this.#taken)
      this.#taken += part.length
      at += part.length
    }
  }

  /** Gives all bytes to `use`, which may not keep them, and holds nothing afterwards. */
  release<T>(use: (pieces: readonly Uint8Array[]) => T): T {
    const last = this.#rooms.length - 1
    const rooms = this.#rooms.map((room, at) => (at === last ? room.subarray(0, this.#taken) : room))
    try {
      const little = this.#small ?? this.#gathered?.bytes()
      return use(little === undefined ? rooms : [little])
    } finally {
      this.memory.giveBack(this.#rooms)
      this.#small = this.#gathered = undefined
      this.#rooms = []
      this.#taken = pieceRoomBytes
    }
  }
}
