/** Rank, then weight and length of the value. */
const headBytes = 8
const weightBit = 2 ** 31

/** A view of the same memory. */
export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
}

/**
 * How a record lies in memory while it is sorted: a head of 8 bytes (rank, weight, length of the value), the key, the value; or
 * the key alone.
 */
export class RecordLayout {
  readonly headBytes: number

  constructor(
    readonly keyBytes: number,
    readonly unique: boolean,
  ) {
    if (keyBytes < 4) throw new RangeError(`keys of ${keyBytes} bytes`)
    this.headBytes = unique ? headBytes : 0
  }

  writeHead(view: DataView, at: number, valueBytes: number, rank: number, weight: 0 | 1): void {
    view.setUint32(at, rank, true)
    view.setUint32(at + 4, valueBytes + weight * weightBit, true)
  }

  valueBytesAt(view: DataView, at: number): number {
    return this.unique ? view.getUint32(at + 4, true) & (weightBit - 1) : 0
  }

  entryBytes(view: DataView, at: number): number {
    return this.headBytes + this.keyBytes + this.valueBytesAt(view, at)
  }

  /** The entry whose key begins at `keyAt`. */
  entryAt(bytes: Buffer, keyAt: number): Buffer {
    const at = keyAt - this.headBytes
    return bytes.subarray(at, at + this.entryBytes(viewOf(bytes), at))
  }

  /** Below 0 where the key of the entry at `one` comes first. */
  compareKeys(view: DataView, one: number, other: number): number {
    const words = this.keyBytes & ~3
    for (let at = this.headBytes; at < this.headBytes + words; at += 4) {
      const difference = view.getUint32(one + at) - view.getUint32(other + at)
      if (difference !== 0) return difference
    }
    for (let at = this.headBytes + words; at < this.headBytes + this.keyBytes; at += 1) {
      const difference = view.getUint8(one + at) - view.getUint8(other + at)
      if (difference !== 0) return difference
    }
    return 0
  }

  /** Whether the entry at `one` is the one of two that stays: the higher rank, the greater weight, the lesser value. */
  isBetter(bytes: Buffer, view: DataView, one: number, other: number): boolean {
    const rank = view.getUint32(one, true) - view.getUint32(other, true)
    if (rank !== 0) return rank > 0
    const weight = (view.getUint32(one + 4, true) >>> 31) - (view.getUint32(other + 4, true) >>> 31)
    if (weight !== 0) return weight > 0
    const value = (at: number): Buffer =>
      bytes.subarray(at + this.headBytes + this.keyBytes, at + this.entryBytes(view, at))
    return Buffer.compare(value(one), value(other)) < 0
  }
}
