import { pause } from '../actor/clock.js'
import { type Id, idBytes } from '../format/id.js'

/** One word for all ids with the same first bits: beside a few hundred pending ones an id that is not one waits for nothing. */
const slotsBits = 14
/** Index of the word that counts what was accepted, and of the one that says up to which of these the tables know. */
const [accepted, written, slots] = [0, 1, 2]
const lookEveryMs = 2
/** The disk is full, or the thread of uploads is gone: whoever asks is told what the tables say. */
const waitMaxMs = 1000

/**
 * Tells other threads which accepted items the tables may not show yet, in shared memory. Counts wrap around: only their
 * difference counts.
 */
export class PendingMarks {
  static readonly bytes = 4 * (slots + (1 << slotsBits))
  readonly #words: Int32Array

  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory)
  }

  /** Only by the thread of uploads, before anybody is told of the item. */
  add(id: Id): void {
    const count = (Atomics.load(this.#words, accepted) + 1) | 0
    Atomics.store(this.#words, slotOf(id), count)
    Atomics.store(this.#words, accepted, count)
  }

  /** The tables show all that was added. */
  allWritten(): void {
    Atomics.store(this.#words, written, Atomics.load(this.#words, accepted))
  }

  /** Ask this before the tables are asked: a false that comes after may be of an item that was written between the two. */
  isPending(id: Id): boolean {
    const due = Atomics.load(this.#words, slotOf(id))
    return ((due - Atomics.load(this.#words, written)) | 0) > 0
  }

  /** Resolves when the tables show the item, or after a second. */
  async shown(id: Id): Promise<void> {
    for (let ms = 0; ms < waitMaxMs && this.isPending(id); ms += lookEveryMs) await pause(lookEveryMs)
  }
}

function slotOf(id: Id): number {
  const bytes = idBytes(id)
  return slots + ((((bytes[0] ?? 0) << 8) | (bytes[1] ?? 0)) >> (16 - slotsBits))
}
