import type { Tag } from '../format/tag.js'

/** A transaction or data item, whole: what a segment takes and gives back, field by wordField. Byte fields may be views. */
export interface SegmentRow {
  /** Height of its block. What is in no block is in no segment. */
  readonly height: number
  /** Position of the root transaction in its block. */
  readonly index: number
  readonly isItem: boolean
  /** 32 bytes. */
  readonly id: Uint8Array
  /** Seconds since 1970. */
  readonly seenSeconds: number
  /** Bytes of the payload. */
  readonly size: number
  /** SHA-256 of the public key, 32 bytes. */
  readonly owner: Uint8Array
  /** Empty: none. */
  readonly recipient: Uint8Array
  readonly anchor: Uint8Array
  /** In the order of the header. */
  readonly tags: readonly Tag[]
  /** Number of the signature scheme (ANS-104); undefined for transactions of the first kinds. */
  readonly signatureType: number | undefined
  /** Undefined where it was not kept. */
  readonly signature: Uint8Array | undefined
  /** Present for items alone. */
  readonly place: ItemOffsets | undefined
  /** Present for transactions alone. */
  readonly transfer: SegmentTransfer | undefined
  /** Nobody checked that the owner of the item signed it. */
  readonly isUnjudged: boolean
}

/** Where an item lies. Offsets count from the start of the payload that holds it. */
export interface ItemOffsets {
  /** Id of the bundle that directly holds it, 32 bytes. */
  readonly parent: Uint8Array
  readonly rootItemOffset: number
  readonly parentItemOffset: number
  readonly headerSize: number
}

/** What only transactions of the base layer have. */
export interface SegmentTransfer {
  readonly format: number
  readonly quantity: bigint
  readonly reward: bigint
  /** What the block's tree has for it: 32 bytes, or none. */
  readonly dataRoot: Uint8Array
  /** Offset of the last byte of its data in the weave (1-based); 0: not known, or no data. */
  readonly weaveEnd: number
}

/** The position of a transaction in its block, and whether a row is an item inside it: as keys of rows have it (24 bits). */
export function placeInBlock(index: number, isItem: boolean): number {
  return index * 2 + (isItem ? 1 : 0)
}

/** Below zero where `one` (32 bytes from `oneAt`) comes before `other`. */
export function compareIds(one: Uint8Array, oneAt: number, other: Uint8Array, otherAt: number): number {
  for (let at = 0; at < 32; at += 1) {
    const difference = (one[oneAt + at] as number) - (other[otherAt + at] as number)
    if (difference !== 0) return difference
  }
  return 0
}
