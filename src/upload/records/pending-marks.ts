import { pause, systemClock } from '../../actor/clock.js'
import { type Id, idBytes } from '../../format/id.js'

/** One word for all ids with the same first bits: beside a few hundred pending ones an id that is not one waits for nothing. */
const slotsBits = 14
/**
 * Index of the word that counts accepted items, of the one with the number of those that are in the tables, and of the one that
 * says whether the tables have what was accepted before the start.
 */
const [accepted, written, brought, slots] = [0, 1, 2, 3]
const lookEveryMs = 2
/** Nobody waits longer: the disk is full, or the thread of uploads is gone. */
const waitMaxMs = 1000

/**
 * Shows other threads which accepted items the tables may not show yet, in shared memory. Counts wrap around: only their
 * difference counts.
 */
export class PendingMarks {
  static readonly bytes = 4 * (slots + (1 << slotsBits))
  readonly #words: Int32Array
  /** The next look, for which all who wait on this thread wait. */
  #nextLook: Promise<void> | undefined

  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory)
  }

  /** Only by the upload thread, before the item is acknowledged to anybody. */
  add(id: Id): void {
    const count = (Atomics.load(this.#words, accepted) + 1) | 0
    Atomics.store(this.#words, slotOf(id), count)
    Atomics.store(this.#words, accepted, count)
  }

  /** The tables show all that was added. */
  allWritten(): void {
    Atomics.store(this.#words, written, Atomics.load(this.#words, accepted))
  }

  /** The tables show all that was accepted before the start. Only by the upload thread. */
  allBrought(): void {
    Atomics.store(this.#words, brought, 1)
  }

  /** False: an item that the tables do not show may have a receipt, because the log or the object store was not read yet. */
  get isBrought(): boolean {
    return Atomics.load(this.#words, brought) === 1
  }

  /**
   * The count that the tables must reach before they show the item, if it was accepted; undefined: they have reached it. Call
   * this before reading the tables, because the item may be written between the two.
   */
  dueOf(id: Id): number | undefined {
    const due = Atomics.load(this.#words, slotOf(id))
    return this.#isWritten(due) ? undefined : due
  }

  /**
   * Resolves with true when the tables are written up to this count: what is accepted meanwhile makes nobody wait longer. False
   * after a second: they are not.
   */
  async shown(due: number): Promise<boolean> {
    const endMs = systemClock.monotonic() + waitMaxMs
    while (!this.#isWritten(due)) {
      if (systemClock.monotonic() >= endMs) return false
      this.#nextLook ??= pause(lookEveryMs).then(() => {
        this.#nextLook = undefined
      })
      await this.#nextLook
    }
    return true
  }

  #isWritten(due: number): boolean {
    return ((due - Atomics.load(this.#words, written)) | 0) <= 0
  }
}

function slotOf(id: Id): number {
  const bytes = idBytes(id)
  return slots + ((((bytes[0] ?? 0) << 8) | (bytes[1] ?? 0)) >> (16 - slotsBits))
}
