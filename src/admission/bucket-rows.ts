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

export function bucketRowKey(kind: BucketKind, key: ArrayLike<number>): Buffer {
  const bytes = Buffer.alloc(17)
  bytes[0] = kinds.indexOf(kind)
  for (let at = 0; at < 4; at += 1) bytes.writeInt32BE((key[at] ?? 0) | 0, 1 + at * 4)
  return bytes
}

export function readBucketRowKey(bytes: Uint8Array): { kind: BucketKind; key: KeyWords } {
  const view = Buffer.from(bytes)
  const word = (at: number): number => view.readInt32BE(1 + at * 4)
  return { kind: kinds[view[0] ?? 0] ?? 'ip', key: [word(0), word(1), word(2), word(3)] }
}

export function bucketRow({ lacking, paid, savedMs }: BucketRow): Buffer {
  const bytes = Buffer.alloc(24)
  bytes.writeDoubleBE(lacking, 0)
  bytes.writeDoubleBE(paid, 8)
  bytes.writeDoubleBE(savedMs, 16)
  return bytes
}

export function readBucketRow(bytes: Uint8Array): BucketRow {
  const view = Buffer.from(bytes)
  return { lacking: view.readDoubleBE(0), paid: view.readDoubleBE(8), savedMs: view.readDoubleBE(16) }
}

export function paymentKey(payment: string): Buffer {
  return createHash('sha256').update(payment).digest()
}

export function paymentRow(tokens: number, nowMs: number): Buffer {
  const bytes = Buffer.alloc(16)
  bytes.writeDoubleBE(tokens, 0)
  bytes.writeDoubleBE(nowMs, 8)
  return bytes
}

export function readPaymentMs(bytes: Uint8Array): number {
  return Buffer.from(bytes).readDoubleBE(8)
}
