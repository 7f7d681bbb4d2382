import type { FileHandle } from 'node:fs/promises'
import type { Caller } from '../../actor/mailbox-address.js'
import type { ProgressTable, SlotState } from '../reading/progress-table.js'
import type { SourceProgress } from '../source-messages.js'

/** Free places of the progress table. Only the fetcher's thread takes and gives. */
export class Slots {
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

/** One file on its way to its readers: how far it is, who reads it, and whom to tell. */
export class FileDelivery {
  readonly #readers = new Map<number, Caller<SourceProgress>>()
  #readable = 0
  #state: SlotState = 'growing'

  constructor(
    private readonly table: ProgressTable,
    readonly slot: number,
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

  /** Makes so many bytes readable and tells those who wait. */
  move(readable: number, state: SlotState): void {
    this.#readable = readable
    this.#state = state
    if (!this.table.move(this.slot, readable, state)) return
    const event: SourceProgress = { kind: 'progress', slots: [this.slot] }
    for (const caller of new Set(this.#readers.values())) caller.hear(event)
  }

  join(reader: number, caller: Caller<SourceProgress>): void {
    this.#readers.set(reader, caller)
  }

  leave(reader: number): void {
    this.#readers.delete(reader)
  }
}

/**
 * A path by which any thread of this process opens the very file behind `handle`, whatever it is called by then: a draft may
 * have become a blob, or be unlinked, between the word and the opening.
 */
export function openablePath(handle: FileHandle): string {
  return `/proc/self/fd/${handle.fd}`
}
