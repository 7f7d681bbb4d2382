/**
 * Transfers as they lie in LMDB: those of one commit together, so that a group of orders costs one row and not one row for each.
 *
 * A block: number of its transfers (u8), where each text ends (u32 little-endian, counted from the first text), the texts.
 */

/** Where a transfer is: its number, and how many stand before it in its block. The block's key is the number of its first. */
export interface Place {
  readonly sequence: number
  readonly index: number
}

/** At most 255. To read one transfer the whole block is copied. */
export const placesMax = 64
const blockBytesMax = 16_384
const endBytes = 4

/** Cuts transfers into blocks, in their order. */
export class BlockWriter {
  readonly #ends: number[] = []
  #texts = Buffer.allocUnsafe(blockBytesMax)
  #first = 0

  constructor(private readonly put: (first: number, block: Buffer) => void) {}

  /** The block is put when it is full, and by `end`; until then the transfer cannot be read. The text is copied. */
  add(sequence: number, text: Uint8Array): Place {
    const ends = this.#ends
    if (ends.length === placesMax || (ends.at(-1) ?? 0) + text.length > blockBytesMax) this.end()
    if (ends.length === 0) this.#first = sequence
    const start = ends.at(-1) ?? 0
    const end = start + text.length
    if (end > this.#texts.length) this.#texts = Buffer.allocUnsafe(end)
    this.#texts.set(text, start)
    return { sequence, index: ends.push(end) - 1 }
  }

  /** Puts what was added since the last block. */
  end(): void {
    const ends = this.#ends
    if (ends.length === 0) return
    const lead = 1 + ends.length * endBytes
    const bytes = ends.at(-1) ?? 0
    const block = Buffer.allocUnsafe(lead + bytes)
    block[0] = ends.length
    for (const [at, end] of ends.entries()) block.writeUInt32LE(end, 1 + at * endBytes)
    block.set(this.#texts.subarray(0, bytes), lead)
    this.put(this.#first, block)
    this.clear()
  }

  /** Forgets what was added since the last block. */
  clear(): void {
    this.#ends.length = 0
  }
}

function viewOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** The text of one transfer of a block. Throws where it has none of that index: the store is broken. */
export function textInBlock(stored: Uint8Array, index: number): string {
  const block = viewOf(stored)
  const count = block[0] ?? 0
  if (index >= count) throw new Error(`ledger: a block of ${count} transfers has none at ${index}`)
  const lead = 1 + count * endBytes
  const start = index === 0 ? 0 : block.readUInt32LE(1 + (index - 1) * endBytes)
  return block.toString('utf8', lead + start, lead + block.readUInt32LE(1 + index * endBytes))
}

/** The texts of a block in order. */
export function textsOfBlock(block: Uint8Array): string[] {
  return Array.from({ length: block[0] ?? 0 }, (_, index) => textInBlock(block, index))
}
