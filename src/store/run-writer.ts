import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { BloomFilter, seenMax } from './bloom-filter.js'
import { Merge, RunDraft } from './run-merge.js'
import {
  decodeRunList,
  encodeRunList,
  type Look,
  type RunFile,
  type RunList,
  type Runs,
  runPath,
} from './runs.js'
import { orderOf } from './sort-records.js'

export interface RunLimits {
  /** So many files of like size are merged into one. */
  readonly filesAlike: number
  /** Records in the smallest class of sizes; each next class is `filesAlike` times as large. */
  readonly smallRecords: number
}

/** So often something is looked for in vain before it is worth remembering what there is. */
const missesMax = 20_000

/** Records that are read at once so that they are remembered, at least. */
const surveyedEach = 65_536

/** The writer's side of LMDB, inside its transaction. */
export interface RunLedger {
  read(): Uint8Array | undefined
  put(list: Uint8Array): void
}

/**
 * Adds runs and merges them: only the one writer. A file is whole and on the disk before the transaction that names it
 * commits; a file that no list names is removed at the next start.
 */
export class RunWriter {
  #pending: Uint32Array
  #count = 0
  /** Open addressing: position of a pending record + 1, by its first number. */
  #slots = new Int32Array(1024)
  #merge: Merge | undefined
  /** What was added, and what is in the files that are known; not there before it is worth its memory. */
  #seen: BloomFilter | undefined
  readonly #known = new Set<number>()
  /** The file that is read so that it becomes known, and its next record. */
  #reading: { readonly number: number; next: number } | undefined
  #misses = 0
  /** Files that no list names any more. */
  #retired: number[] = []

  constructor(
    private readonly runs: Runs,
    private readonly ledger: RunLedger,
    private readonly limits: RunLimits,
  ) {
    this.#pending = new Uint32Array(1024 * runs.shape.width)
    runs.isOwn = true
    this.#clean()
  }

  /** Records that were added and are in no file yet. */
  get pending(): number {
    return this.#count
  }

  /** Adds a record: as many numbers as the shape says. */
  add(record: ArrayLike<number>): void {
    const { width } = this.runs.shape
    const at = this.#count * width
    if (at + width > this.#pending.length) {
      const larger = new Uint32Array(this.#pending.length * 2)
      larger.set(this.#pending)
      this.#pending = larger
    }
    for (let word = 0; word < width; word += 1) this.#pending[at + word] = record[word] as number
    this.#count += 1
    if (!this.runs.shape.isHashed) return
    this.#seen?.add(record[0] as number, record[1] as number)
    if (this.#count * 2 > this.#slots.length) this.#rehash()
    else this.#place(this.#count)
  }

  /** Looks at every record that begins with these two numbers, added ones first, until one was it. */
  find(first: number, second: number, look: Look): boolean {
    const { width } = this.runs.shape
    const mask = this.#slots.length - 1
    for (let slot = first & mask; this.#slots[slot] !== 0; slot = (slot + 1) & mask) {
      const at = ((this.#slots[slot] as number) - 1) * width
      const same = this.#pending[at] === first && this.#pending[at + 1] === second
      if (same && look(this.#pending, at)) return true
    }
    const isNew = this.#seen?.has(first, second) === false
    if (this.runs.find(first, second, look, isNew ? this.#known : undefined)) return true
    if (!isNew) this.#misses += 1
    return false
  }

  /** Reads some of what there is, so that most of what is new is known to be new without a look into the files. */
  #survey(records: number): void {
    const files = this.runs.files()
    if (this.#misses > missesMax) this.#begin(files)
    const seen = this.#seen
    if (seen === undefined) return
    for (let left = records; left > 0; ) {
      const number = this.#reading?.number ?? [...files.keys()].find((one) => !this.#known.has(one))
      const file = number === undefined ? undefined : files.get(number)
      if (number === undefined || file === undefined) return
      this.#reading ??= { number, next: 0 }
      const end = Math.min(file.count, this.#reading.next + left)
      for (let record = this.#reading.next; record < end; record += 1) {
        const at = file.at(record)
        seen.add(file.words[at] as number, file.words[at + 1] as number)
      }
      left -= Math.max(1, end - this.#reading.next)
      this.#reading.next = end
      if (end < file.count) return
      this.#known.add(number)
      this.#reading = undefined
    }
  }

  /** Begins to remember what there is, where it is not too much; anew where more came than there is room for. */
  #begin(files: ReadonlyMap<number, RunFile>): void {
    this.#misses = 0
    if (this.#seen !== undefined && this.#seen.count < this.#seen.capacity) return
    const total = [...files.values()].reduce((sum, { count }) => sum + count, this.#count)
    this.#forgetSeen()
    if (total > seenMax) return
    const seen = new BloomFilter(total * 2)
    const { width } = this.runs.shape
    for (let at = 0; at < this.#count * width; at += width) {
      seen.add(this.#pending[at] as number, this.#pending[at + 1] as number)
    }
    this.#seen = seen
  }

  #forgetSeen(): void {
    this.#seen = undefined
    this.#known.clear()
    this.#reading = undefined
  }

  /** Forgets what was added: it was written elsewhere. */
  forget(): void {
    if (this.#count > 0) this.#slots.fill(0)
    this.#count = 0
  }

  /** Writes what was added as a new run. Inside the transaction that makes it true. */
  settle(): void {
    if (this.#count === 0) return
    const { width } = this.runs.shape
    const order = orderOf(this.#pending, width, this.#count)
    const draft = this.#draft()
    for (const record of order) draft.copy(this.#pending, record * width)
    this.#list(draft, [])
    this.forget()
  }

  /** Goes on with a merge by about so many records; what it ended with counts from the next `adopt` on. */
  tend(records: number): void {
    if (this.runs.shape.isHashed) this.#survey(Math.max(records, surveyedEach))
    this.#merge ??= this.#next()
    this.#merge?.step(records)
  }

  /** Puts a merged file in the place of those it was made of, if one is done. Inside a transaction. True where it did. */
  adopt(): boolean {
    const merge = this.#merge
    if (merge === undefined || !merge.isDone) return false
    this.#list(merge.draft, merge.numbers)
    this.#retired.push(...merge.numbers)
    this.#merge = undefined
    return true
  }

  /** Makes one run of all, of the records that `keep` wants. Inside a transaction; takes as long as it takes. */
  rewrite(keep: Look): void {
    this.settle()
    this.#merge?.draft.drop()
    const files = this.runs.files()
    if (files.size === 0) return
    this.#merge = new Merge(files, this.#draft(), keep)
    while (!this.#merge.isDone) this.#merge.step(2 ** 20)
    this.adopt()
  }

  /**
   * Paths of files that no list names any more, each stated once: to be removed when the commit that dropped them would survive
   * a power cut, and readers had time to see it.
   */
  takeRetired(): string[] {
    return this.#retired.splice(0).map((number) => runPath(this.runs.folder, this.runs.shape, number))
  }

  /** Drops all files, and what was added. Inside a transaction. */
  clear(): void {
    this.forget()
    this.close()
    this.#forgetSeen()
    this.#misses = 0
    const { next, files } = decodeRunList(this.ledger.read())
    this.ledger.put(encodeRunList({ next, files: [] }))
    this.#retired.push(...files.map(([number]) => number))
    this.runs.refresh()
  }

  close(): void {
    this.#merge?.draft.drop()
    this.#merge = undefined
  }

  #place(position: number): void {
    const mask = this.#slots.length - 1
    let slot = (this.#pending[(position - 1) * this.runs.shape.width] as number) & mask
    while (this.#slots[slot] !== 0) slot = (slot + 1) & mask
    this.#slots[slot] = position
  }

  #rehash(): void {
    this.#slots = new Int32Array(this.#slots.length * 4)
    for (let position = 1; position <= this.#count; position += 1) this.#place(position)
  }

  #draft(): RunDraft {
    return new RunDraft(this.runs.folder, `${this.runs.shape.name}.draft`, this.runs.shape.width)
  }

  /** Gives a draft its name and changes the list. */
  #list(draft: RunDraft, dropped: readonly number[]): void {
    const { next, files } = decodeRunList(this.ledger.read())
    const left = files.filter(([number]) => !dropped.includes(number))
    const isEmpty = draft.records === 0
    if (isEmpty) draft.drop()
    else draft.finish(runPath(this.runs.folder, this.runs.shape, next))
    const list: RunList = {
      next: next + 1,
      files: isEmpty ? left : [...left, [next, draft.records]],
    }
    this.ledger.put(encodeRunList(list))
    this.runs.refresh()
    this.#follow(next, dropped)
  }

  /** What was added since it is remembered is known, and what was merged of files that are known. */
  #follow(number: number, dropped: readonly number[]): void {
    if (this.#seen === undefined) return
    if (dropped.every((one) => this.#known.has(one))) this.#known.add(number)
    for (const one of dropped) this.#known.delete(one)
    if (this.#reading !== undefined && dropped.includes(this.#reading.number)) this.#reading = undefined
  }

  /** The smallest class of sizes that has too many files. */
  #next(): Merge | undefined {
    const { filesAlike, smallRecords } = this.limits
    const classes = new Map<number, Map<number, RunFile>>()
    for (const [number, file] of this.runs.files()) {
      const size = Math.max(0, Math.floor(Math.log(file.count / smallRecords) / Math.log(filesAlike)))
      const alike = classes.get(size) ?? new Map<number, RunFile>()
      classes.set(size, alike.set(number, file))
    }
    const [size] = [...classes.keys()]
      .filter((one) => (classes.get(one)?.size ?? 0) >= filesAlike)
      .sort((a, b) => a - b)
    const alike = size === undefined ? undefined : classes.get(size)
    return alike === undefined ? undefined : new Merge(alike, this.#draft(), () => true)
  }

  /** Removes what an earlier process left half done. */
  #clean(): void {
    const { folder, shape } = this.runs
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const known = new Set(
      decodeRunList(this.ledger.read()).files.map(([number]) => runPath(folder, shape, number)),
    )
    for (const name of readdirSync(folder)) {
      const mine = name.startsWith(`${shape.name}-`) || name.startsWith(`${shape.name}.`)
      if (mine && !known.has(join(folder, name))) rmSync(join(folder, name), { force: true })
    }
  }
}
