import type { Environment, Table } from '../store/lmdb.js'
import { type Agenda, pauseMs, type Task } from './agenda.js'

/** A bundle at which the program has ended before. */
interface Suspect {
  readonly key: Uint8Array
  readonly ends: number
}

const recordBytes = 5
/** A bundle at which two runs ended waits so long, then twice as long each time. */
const [waitMs, waitMaxMs] = [5000, 6 * 3_600_000]

/**
 * Bundles that are being opened, on disk. The process may be killed for what one of them takes, and the task of it would stand
 * first in line at the next start, and at each start after it. So a start knows from here at which bundles the last run ended:
 * suspects, which are opened after all others: beside them after one end, and alone after more.
 *
 * Record: `it is open u8, runs that ended while it was u32`, by the key of its task.
 */
export class OpeningMarks {
  readonly #table: Table
  readonly #suspects = new Map<string, Suspect>()

  constructor(
    private readonly environment: Environment,
    private readonly agenda: Agenda,
  ) {
    this.#table = environment.table('bundles opening')
  }

  /** At a start: counts an attempt for each bundle that was open when the last run ended. Throws where the disk takes nothing. */
  load(nowMs: number): void {
    const entries = this.#table.from(undefined, Number.MAX_SAFE_INTEGER)
    const suspects = this.environment.write(() =>
      entries.flatMap(({ key, value }) => this.#loaded(Buffer.from(key), Buffer.from(value), nowMs)),
    )
    for (const suspect of suspects) this.#suspects.set(markName(suspect.key), suspect)
  }

  #loaded(key: Uint8Array, record: Buffer, nowMs: number): Suspect[] {
    const wasOpen = record[0] === 1
    const ends = record.readUInt32BE(1) + (wasOpen ? 1 : 0)
    const task = this.agenda.find(key)
    if (task === undefined) {
      this.#table.remove(key)
      return []
    }
    // One end may have been the fault of another bundle beside it, or of none.
    const delayMs = ends === 1 ? 0 : pauseMs(ends - 2, waitMs, waitMaxMs)
    if (wasOpen) this.agenda.later(task, nowMs + delayMs)
    this.#table.put(key, recordOf(false, ends))
    return [{ key, ends }]
  }

  /** Whether an earlier run ended while this bundle was open. */
  isSuspect(key: string): boolean {
    return this.endsAt(key) > 0
  }

  /** How many runs ended while this bundle was open. */
  endsAt(key: string): number {
    return this.#suspects.get(key)?.ends ?? 0
  }

  /** The suspect that is due at which the fewest runs have ended. Writes nothing: the next `load` removes marks without tasks. */
  next(nowMs: number): Task | undefined {
    const sorted = [...this.#suspects.values()].sort((one, other) => one.ends - other.ends)
    for (const { key } of sorted) {
      const task = this.agenda.find(key)
      if (task === undefined) this.#suspects.delete(markName(key))
      else if (task.dueMs <= nowMs) return task
    }
    return undefined
  }

  /** These bundles are about to be opened. */
  begun(...keys: readonly Uint8Array[]): void {
    this.environment.write(() => {
      for (const key of keys) this.#table.put(key, recordOf(true, this.endsAt(markName(key))))
    })
  }

  /** It is open no more. `isOver`: all of it was read, or it is given up; else it stays what it was. */
  ended(key: Uint8Array, isOver: boolean): void {
    this.endedAll([key], isOver)
  }

  /** The same of several. */
  endedAll(keys: readonly Uint8Array[], isOver: boolean): void {
    this.environment.write(() => {
      for (const key of keys) {
        const ends = this.endsAt(markName(key))
        if (isOver || ends === 0) this.#table.remove(key)
        else this.#table.put(key, recordOf(false, ends))
      }
    })
    if (isOver) for (const key of keys) this.#suspects.delete(markName(key))
  }
}

/** The name of a bundle here. */
export function markName(key: Uint8Array): string {
  return Buffer.from(key).toString('hex')
}

function recordOf(isOpen: boolean, ends: number): Uint8Array {
  const record = Buffer.alloc(recordBytes)
  record[0] = isOpen ? 1 : 0
  record.writeUInt32BE(ends, 1)
  return record
}
