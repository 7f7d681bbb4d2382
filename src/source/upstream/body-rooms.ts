/** Rooms are of these sizes: a piece gets the smallest that holds it. */
const [leastBits, mostBits] = [12, 17] as const

/** Bytes of free rooms of one size that are kept. */
const keptMaxBytes = 1024 * 1024

/**
 * Memory for pieces of small bodies, which is used again. New memory for each of them would be cleared by the system page by
 * page, and V8 would have to find out when it is garbage.
 */
export class BodyRooms {
  /** Free rooms by the logarithm of their size. */
  readonly #free: ArrayBuffer[][] = Array.from({ length: mostBits + 1 }, () => [])

  /** Memory of exactly this length, with anything in it. */
  take(length: number): Uint8Array {
    const bits = bitsFor(length)
    if (bits > mostBits) return Buffer.allocUnsafeSlow(length)
    const room = this.#free[bits]?.pop() ?? Buffer.allocUnsafeSlow(2 ** bits).buffer
    return new Uint8Array(room, 0, length)
  }

  /** Takes back what `take` gave, once: nobody may read it any more. */
  give({ buffer }: Uint8Array): void {
    const bits = bitsFor(buffer.byteLength)
    if (buffer.byteLength !== 2 ** bits || !(buffer instanceof ArrayBuffer)) return
    const free = this.#free[bits]
    if (free !== undefined && free.length < keptMaxBytes >> bits) free.push(buffer)
  }
}

function bitsFor(length: number): number {
  return Math.max(leastBits, 32 - Math.clz32(length - 1))
}
