import {
  closeSync,
  fdatasyncSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
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

/** What a merge writes at once. */
const pieceBytes = 2 ** 20

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
    return this.runs.find(first, second, look)
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
   * Paths of files that no list names any more, each told once: to be removed when the commit that dropped them would survive
   * a power cut, and readers had time to see it.
   */
  takeRetired(): string[] {
    return this.#retired.splice(0).map((number) => runPath(this.runs.folder, this.runs.shape, number))
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

  #draft(): Draft {
    return new Draft(this.runs.folder, `${this.runs.shape.name}.draft`, this.runs.shape.width)
  }

  /** Gives a draft its name and changes the list. */
  #list(draft: Draft, dropped: readonly number[]): void {
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

/** A file that is being written. */
class Draft {
  records = 0
  readonly #piece: Uint32Array
  #filled = 0
  readonly #path: string
  readonly #fd: number

  constructor(
    private readonly folder: string,
    name: string,
    private readonly width: number,
  ) {
    this.#path = join(folder, `${name}${nextDraft()}`)
    this.#fd = openSync(this.#path, 'w', 0o600)
    this.#piece = new Uint32Array(pieceBytes / 4)
  }

  copy(words: Uint32Array, at: number): void {
    for (let word = 0; word < this.width; word += 1)
      this.#piece[this.#filled + word] = words[at + word] as number
    this.#filled += this.width
    this.records += 1
    if (this.#filled === this.#piece.length) this.#flush()
  }

  #flush(): void {
    const bytes = new Uint8Array(this.#piece.buffer, 0, this.#filled * 4)
    for (let from = 0; from < bytes.length; ) from += writeSync(this.#fd, bytes, from)
    this.#filled = 0
  }

  /** Names it once it is on the disk. */
  finish(path: string): void {
    this.#flush()
    fdatasyncSync(this.#fd)
    closeSync(this.#fd)
    renameSync(this.#path, path)
    const folder = openSync(this.folder, 'r')
    fsyncSync(folder)
    closeSync(folder)
  }

  drop(): void {
    closeSync(this.#fd)
    rmSync(this.#path, { force: true })
  }
}

let drafts = 0

function nextDraft(): number {
  drafts += 1
  return drafts
}

/** Makes one sorted file of several, some records at a time, each record once. */
class Merge {
  readonly numbers: readonly number[]
  readonly #files: readonly RunFile[]
  readonly #next: number[]
  readonly #last: Uint32Array
  isDone = false

  constructor(
    files: ReadonlyMap<number, RunFile>,
    readonly draft: Draft,
    private readonly keep: Look,
  ) {
    this.numbers = [...files.keys()]
    this.#files = [...files.values()]
    this.#next = this.#files.map(() => 0)
    this.#last = new Uint32Array(this.#files[0]?.width ?? 0)
  }

  step(records: number): void {
    for (let left = records; left > 0 && !this.isDone; left -= 1) {
      const least = this.#least()
      const file = this.#files[least]
      if (file === undefined) {
        this.isDone = true
        return
      }
      const at = file.at(this.#next[least] as number)
      this.#next[least] = (this.#next[least] as number) + 1
      const isTwin = this.draft.records > 0 && compare(file.words, at, this.#last, 0, file.width) === 0
      if (isTwin || !this.keep(file.words, at)) continue
      for (let word = 0; word < file.width; word += 1) this.#last[word] = file.words[at + word] as number
      this.draft.copy(file.words, at)
    }
  }

  /** The file whose next record is the least; -1 where there is none. */
  #least(): number {
    let least = -1
    let [words, at] = [this.#last, 0]
    for (let index = 0; index < this.#files.length; index += 1) {
      const file = this.#files[index] as RunFile
      const record = this.#next[index] as number
      if (record >= file.count) continue
      const here = file.at(record)
      if (least >= 0 && compare(file.words, here, words, at, file.width) >= 0) continue
      least = index
      words = file.words
      at = here
    }
    return least
  }
}

function compare(
  one: Uint32Array,
  oneAt: number,
  other: Uint32Array,
  otherAt: number,
  width: number,
): number {
  for (let word = 0; word < width; word += 1) {
    const difference = (one[oneAt + word] as number) - (other[otherAt + word] as number)
    if (difference !== 0) return difference
  }
  return 0
}
