import { closeSync, fdatasyncSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Look, RunFile } from './runs.js'
import { syncNow } from './synced.js'

/** What is written at once. */
const pieceBytes = 2 ** 20

/** A file that is being written. */
export class RunDraft {
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
    syncNow(this.folder)
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
export class Merge {
  readonly numbers: readonly number[]
  readonly #files: readonly RunFile[]
  readonly #next: number[]
  readonly #last: Uint32Array
  isDone = false

  constructor(
    files: ReadonlyMap<number, RunFile>,
    readonly draft: RunDraft,
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
      const isDuplicate = this.draft.records > 0 && compare(file.words, at, this.#last, 0, file.width) === 0
      if (isDuplicate || !this.keep(file.words, at)) continue
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
