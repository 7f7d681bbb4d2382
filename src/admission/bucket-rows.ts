import { createHash } from 'node:crypto'
import type { KeyWords } from './bucket-messages.js'
import type { BucketKind } from './buckets.js'

/**
 * Rows of the keeper's environment. `buckets`: kind (1 byte), key (16) -> grains lacking, paid tokens, milliseconds since 1970
 * (three float64). `payments`: SHA-256 of its name -> tokens, milliseconds (two float64). All big-endian.
 */
export interface BucketRow {
  readonly lacking: number
  readonly paid: number
  readonly savedMs: number
}

const kinds: readonly BucketKind[] = ['ip', 'resource']

/** The key of a bucket on disk, 17 bytes: its kind, then four words of 32 bits, big-endian. */
export function bucketRowKey(kind: BucketKind, key: ArrayLike<number>): Buffer {
  const bytes = Buffer.alloc(17)
  bytes[0] = kinds.indexOf(kind)
  for (let at = 0; at < 4; at += 1) bytes.writeInt32BE((key[at] ?? 0) | 0, 1 + at * 4)
  return bytes
}

/** The inverse of `bucketRowKey`. */
export function readBucketRowKey(bytes: Uint8Array): { kind: BucketKind; key: KeyWords } {
  const view = Buffer.from(bytes)
  const word = (at: number): number => view.readInt32BE(1 + at * 4)
  return { kind: kinds[view[0] ?? 0] ?? 'ip', key: [word(0), word(1), word(2), word(3)] }
}

/** A bucket as it is on disk, 24 bytes: lacking and paid tokens, then the time (ms since 1970), as doubles, big-endian. */
export function bucketRow({ lacking, paid, savedMs }: BucketRow): Buffer {
  const bytes = Buffer.alloc(24)
  bytes.writeDoubleBE(lacking, 0)
  bytes.writeDoubleBE(paid, 8)
  bytes.writeDoubleBE(savedMs, 16)
  return bytes
}

/** The inverse of `bucketRow`. */
export function readBucketRow(bytes: Uint8Array): BucketRow {
  const view = Buffer.from(bytes)
  return { lacking: view.readDoubleBE(0), paid: view.readDoubleBE(8), savedMs: view.readDoubleBE(16) }
}

/** The key of a credited payment on disk: SHA-256 of its name. */
export function paymentKey(payment: string): Buffer {
  return createHash('sha256').update(payment).digest()
}

/** A credited payment as it is on disk, 16 bytes: its tokens, then the time (ms since 1970), as doubles, big-endian. */
export function paymentRow(tokens: number, nowMs: number): Buffer {
  const bytes = Buffer.alloc(16)
  bytes.writeDoubleBE(tokens, 0)
  bytes.writeDoubleBE(nowMs, 8)
  return bytes
}

/** The time of a credited payment, ms since 1970. */
export function readPaymentMs(bytes: Uint8Array): number {
  return Buffer.from(bytes).readDoubleBE(8)
}
