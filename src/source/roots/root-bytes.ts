import type { ItemPlace } from '../../catalog/attributes.js'
import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'

/** The data of a root transaction (or of a bundle whose payload is at hand), read at any place. */
export interface RootBytes {
  readonly id: Id
  readonly sizeBytes: number
  /** SHA-256 of the data on record, where it lies on disk. */
  readonly digest?: Uint8Array
  /** Where the data lie themselves, where they are an item's that was read out of another root. */
  readonly outer?: ItemPlace
  /** Every byte given was proven against the chain. */
  readonly proven: boolean
  readonly trusted: boolean
  /** Height of the block that holds the root, where it is known. */
  readonly height?: number
  /**
   * Bytes from `start` to `end` (exclusive, inside the data) in order, in pieces as they come; a refusal is the last word. A
   * piece is valid until the next one is requested.
   * Reads ahead by a bounded number of pieces. `isKept`: the reader writes all of it into the store.
   */
  stream(
    start: number,
    end: number,
    signal: AbortSignal,
    isKept?: boolean,
  ): AsyncIterable<Uint8Array | Refusal>
  /** Those bytes where they lie in memory in one piece, for those who need not wait; valid until anything else is requested. */
  near?(start: number, end: number): Uint8Array | undefined
  /** Gives back what is held. */
  close(): Promise<void>
}

/** The bytes from `start` to `end` (exclusive) in one array; for headers, not for payloads. */
export async function readAll(
  root: RootBytes,
  start: number,
  end: number,
  signal: AbortSignal,
): Promise<Uint8Array | Refusal> {
  const near = root.near?.(start, end)
  if (near !== undefined) return near
  const bytes = Buffer.allocUnsafe(end - start)
  let count = 0
  for await (const piece of root.stream(start, end, signal)) {
    if (isRefusal(piece)) return piece
    bytes.set(piece, count)
    count += piece.length
  }
  return count === bytes.length ? bytes : refuse('upstream', 'upstream', `the data of ${root.id} ended early`)
}
