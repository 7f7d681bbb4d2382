import type { FileHandle } from 'node:fs/promises'
import type { Caller } from '../../actor/mailbox-address.js'
import type { ProgressTable, SlotState } from '../reading/progress-table.js'
import type { SourceProgress } from '../source-messages.js'

/** Free places of the progress table. Only the fetcher's thread takes and gives. */
export class ProgressSlots {
  readonly #free: number[]

  constructor(readonly table: ProgressTable) {
    this.#free = Array.from({ length: table.slots }, (_, index) => table.slots - 1 - index)
  }

  get taken(): number {
    return this.table.slots - this.#free.length
  }

  /** A slot, growing and empty; undefined where all are taken. */
  take(): number | undefined {
    const slot = this.#free.pop()
    if (slot !== undefined) this.table.move(slot, 0, 'growing')
    return slot
  }

  give(slot: number): void {
    this.table.move(slot, 0, 'free')
    this.#free.push(slot)
  }
}

/** The progress of one file for its readers: readable bytes, state, and the threads to notify. */
export class TransferProgress {
  readonly #readers = new Map<number, Caller<SourceProgress>>()
  #readable = 0
  #state: SlotState = 'growing'

  /** `onOver` is called as soon as no more bytes are to come. */
  constructor(
    private readonly table: ProgressTable,
    readonly slot: number,
    private readonly onOver: () => void = () => undefined,
  ) {}

  get readable(): number {
    return this.#readable
  }

  get state(): SlotState {
    return this.#state
  }

  get readers(): number {
    return this.#readers.size
  }

  /** Makes this many bytes readable and notifies the readers. */
  move(readable: number, state: SlotState): void {
    this.#readable = readable
    this.#state = state
    if (state !== 'growing') this.onOver()
    if (!this.table.move(this.slot, readable, state)) return
    const event: SourceProgress = { kind: 'progress', slots: [this.slot] }
    for (const caller of new Set(this.#readers.values())) caller.hear(event)
  }

  addReader(reader: number, caller: Caller<SourceProgress>): void {
    this.#readers.set(reader, caller)
  }

  removeReader(reader: number): void {
    this.#readers.delete(reader)
  }
}

/**
 * A path by which any thread of this process opens the file behind `handle`, whatever its name is then. A draft may have become a
 * blob, or be unlinked, between message and opening.
 */
export function openablePath(handle: FileHandle): string {
  return `/proc/self/fd/${handle.fd}`
}
