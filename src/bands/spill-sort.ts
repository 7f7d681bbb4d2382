import { closeSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** Bytes of records that are sorted at once in memory; what is more goes to disk in sorted runs. */
const runBytes = 16 * 2 ** 20
/** Bytes of each run that are held while runs are merged. */
const windowBytes = 256 * 1024

/** Sorts records of `size` bytes by their bytes, any number of them, in flat memory. Runs lie in `folder`. */
export class SpillSort {
  #buffer: Buffer
  #at = 0
  readonly #runs: { readonly path: string; readonly bytes: number }[] = []

  constructor(
    private readonly folder: string,
    private readonly name: string,
    private readonly size: number,
    bytesMax = runBytes,
  ) {
    this.#buffer = Buffer.allocUnsafeSlow(Math.max(1, Math.floor(bytesMax / size)) * size)
  }

  /** Room for the next record, all zeros, to be filled at once. */
  next(): Buffer {
    if (this.#at === this.#buffer.length) this.#spill()
    const record = this.#buffer.subarray(this.#at, this.#at + this.size)
    this.#at += this.size
    return record.fill(0)
  }

  /** All records in order, once; each is a view that is valid until the next. Removes the runs at the end. */
  *sorted(): Generator<Buffer> {
    if (this.#runs.length === 0) {
      yield* this.#inOrder()
      return
    }
    this.#spill()
    this.#buffer = Buffer.alloc(0)
    const runs = this.#runs.map((run) => new Run(run.path, run.bytes, this.size))
    try {
      yield* merged(runs)
    } finally {
      for (const run of runs) run.close()
      this.drop()
    }
  }

  /** Removes what lies on disk. */
  drop(): void {
    for (const { path } of this.#runs) rmSync(path, { force: true })
    this.#runs.length = 0
  }

  *#inOrder(): Generator<Buffer> {
    const { size } = this
    const buffer = this.#buffer
    const places = new Uint32Array(this.#at / size).map((_, at) => at * size)
    // A typed array sorts in place, without one object a record.
    places.sort((one, other) => buffer.compare(buffer, other, other + size, one, one + size))
    for (const place of places) yield buffer.subarray(place, place + size)
  }

  #spill(): void {
    if (this.#at === 0) return
    const path = join(this.folder, `${this.name}.${this.#runs.length}.run`)
    const file = openSync(path, 'w', 0o600)
    try {
      const out = Buffer.allocUnsafe(this.size * Math.max(1, Math.floor(windowBytes / this.size)))
      let filled = 0
      for (const record of this.#inOrder()) {
        filled += record.copy(out, filled)
        if (filled === out.length) {
          writeSync(file, out)
          filled = 0
        }
      }
      writeSync(file, out, 0, filled)
    } finally {
      closeSync(file)
    }
    this.#runs.push({ path, bytes: this.#at })
    this.#at = 0
  }
}

class Run {
  readonly #file: number
  readonly #window: Buffer
  #filled = 0
  #at = 0
  #read = 0
  /** The record at hand; undefined at the end. */
  head: Buffer | undefined

  constructor(
    path: string,
    private readonly bytes: number,
    private readonly size: number,
  ) {
    this.#file = openSync(path, 'r')
    this.#window = Buffer.allocUnsafe(size * Math.max(1, Math.floor(windowBytes / size)))
    this.advance()
  }

  advance(): void {
    if (this.#at === this.#filled) {
      this.#filled = readSync(
        this.#file,
        this.#window,
        0,
        Math.min(this.#window.length, this.bytes - this.#read),
        null,
      )
      this.#read += this.#filled
      this.#at = 0
    }
    this.head = this.#filled === 0 ? undefined : this.#window.subarray(this.#at, this.#at + this.size)
    this.#at += this.size
  }

  close(): void {
    closeSync(this.#file)
  }
}

/** The runs as one, by a heap of their heads. */
function* merged(runs: readonly Run[]): Generator<Buffer> {
  const heap = runs.filter(({ head }) => head !== undefined)
  const before = (one: number, other: number): boolean =>
    Buffer.compare(heap[one]?.head as Buffer, heap[other]?.head as Buffer) < 0
  const sink = (from: number): void => {
    for (let at = from; ; ) {
      let least = at
      for (const child of [2 * at + 1, 2 * at + 2])
        if (child < heap.length && before(child, least)) least = child
      if (least === at) return
      const moved = heap[at] as Run
      heap[at] = heap[least] as Run
      heap[least] = moved
      at = least
    }
  }
  for (let at = heap.length >> 1; at >= 0; at -= 1) sink(at)
  for (let top = heap[0]; top !== undefined; top = heap[0]) {
    yield top.head as Buffer
    top.advance()
    if (top.head === undefined) {
      const last = heap.pop()
      if (heap.length > 0 && last !== undefined) heap[0] = last
    }
    if (heap.length > 0) sink(0)
  }
}
