import type { Table } from '../store/lmdb.js'
import type { RunLimits, RunWriter } from '../store/run-writer.js'

/** When entries leave a table for a sorted run. */
export interface SpillLimits extends RunLimits {
  /** New entries of one transaction that become a run at once; fewer go into the table. */
  readonly directEntries: number
  /** Entries of the table at most: beyond it, the first `drainEntries` of them become a run with each commit. */
  readonly tableEntries: number
  readonly drainEntries: number
}

/**
 * A file for some thousand entries at least: there are never more than some ten files of a kind. A table of 64 Ki entries
 * lies in the processor's cache, and is moved in portions that take a few hundredths of a second.
 */
export const spillLimits: SpillLimits = {
  directEntries: 4096,
  tableEntries: 65_536,
  drainEntries: 16_384,
  filesAlike: 4,
  smallRecords: 4096,
}

/** What a table and runs say of the same entries. */
export interface SpillForms<Entry> {
  /** Puts an entry into the table. */
  put(table: Table, entry: Entry): void
  /** Adds an entry of the table to the runs. */
  move(key: Uint8Array, value: Uint8Array): void
}

/**
 * The two homes of entries that come in random order: a small table for what comes now and then, sorted runs for what comes
 * by the thousand. Changing a page of a large tree for each entry costs ten times as much.
 */
export class Spill<Entry> {
  #entries: Entry[] = []
  #added = 0
  /** True while the table is known to be empty: nothing need be looked up in it. */
  isTableEmpty: boolean

  constructor(
    private readonly table: Table,
    private readonly limits: SpillLimits,
    /** Whose pending records are the entries that were added. */
    private readonly runs: readonly RunWriter[],
    private readonly forms: SpillForms<Entry>,
  ) {
    this.isTableEmpty = table.count() === 0
  }

  /** Counts a new entry, which was added to the runs already. True: it is to be stated with `add`; beyond some it only counts. */
  takes(): boolean {
    this.#added += 1
    return this.#added < this.limits.directEntries
  }

  add(entry: Entry): void {
    this.#entries.push(entry)
  }

  /** Writes what was added, and moves what is too much. Inside the transaction, before its commit. */
  settle(): void {
    for (const run of this.runs) run.adopt()
    const { directEntries, tableEntries, drainEntries } = this.limits
    const isMuch = this.#added >= directEntries
    if (!isMuch && this.#added > 0) {
      for (const run of this.runs) run.forget()
      for (const entry of this.#entries) this.forms.put(this.table, entry)
      this.isTableEmpty = false
    }
    this.#entries = []
    this.#added = 0
    if (!this.isTableEmpty && (isMuch || this.table.count() > tableEntries)) this.#drain(drainEntries)
    for (const run of this.runs) run.settle()
  }

  /** Drops all entries, also those of the runs. Inside a transaction. */
  clear(): void {
    this.#entries = []
    this.#added = 0
    for (const run of this.runs) run.clear()
    this.table.clear()
    this.isTableEmpty = true
  }

  #drain(limit: number): void {
    const entries = [...this.table.span({ limit })]
    for (const { key, value } of entries) {
      this.forms.move(key, value)
      this.table.remove(key)
    }
    this.isTableEmpty = entries.length < limit
  }
}
