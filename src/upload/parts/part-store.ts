import type { Refusal } from '../../format/refusal.js'
import type { ItemPiece } from '../intake/assembly.js'

/** One part while it comes. `keep` or `drop` is called once, and ends it. */
export interface PartDraft {
  /** Bytes that came. */
  readonly sizeBytes: number
  /**
   * Takes a piece; it may be used again on return. A promise: wait for it before the next one, the disk is behind. A refusal:
   * only `drop` is left.
   */
  write(piece: Uint8Array): undefined | Refusal | Promise<Refusal | undefined>
  /** It is the part that begins at `offset`, durable when this resolves; one that was there before is gone. Never rejects. */
  keep(offset: number): Promise<Refusal | undefined>
  /** After a refusal of `keep`: it lies there all the same, and may be gone after a power cut. */
  readonly isPlaced?: boolean
  drop(): Promise<void>
}

/** Parts of items that are not whole yet. */
export interface PartStore {
  /** Uploads of which this machine alone has anything. */
  uploads(): string[]
  /** Place and size of each part that this machine alone has. */
  kept(upload: string): Map<number, number>
  /** A part that begins to come. */
  draft(upload: string): PartDraft | Refusal
  /** Parts, in this order. Rejects where the engine does not answer. */
  sources(upload: string, offsets: readonly number[]): Promise<readonly ItemPiece[]>
  /** Parts from a place on are gone. Of a file that is removed, or an engine that does not answer: rejects. */
  cut(upload: string, from: number): Promise<void>
  /** All of an upload that is over. */
  remove(upload: string): Promise<void>
}
