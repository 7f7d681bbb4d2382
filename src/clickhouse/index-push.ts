import { setImmediate as turn } from 'node:timers/promises'
import type { Clock } from '../actor/clock.js'
import type { ChainIndex } from '../catalog/index-reader.js'
import type { Row } from '../catalog/row.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import type { ClickhouseClient } from './clickhouse-client.js'
import { rowTables, schemaStatements } from './clickhouse-schema.js'
import { recordHeights, type StableHeights, type WholeHeights, wholeHeights } from './heights.js'
import { RowBinaryWriter } from './row-binary.js'
import { type BlockParts, blockParts, ownerKeyMaxBytes, writeRow } from './stable-row.js'

export interface PushLimits {
  /** A batch has so many rows or bytes, about: it ends with a height. */
  readonly rows: number
  readonly bytes: number
}

export const pushLimits: PushLimits = { rows: 100_000, bytes: 64 * 2 ** 20 }

/** How far a push is. */
export interface PushProgress {
  readonly rows: number
  /** Up to this height everything is in ClickHouse. */
  readonly height: number
  /** Rows for which the tables have no room, of all. */
  readonly leftOut: number
}

/** Rows that are read from the index at once. */
const rowsEach = 4096
const keysKept = 50_000
const none = Buffer.alloc(0)

interface Batch {
  readonly bytes: Buffer
  readonly rows: number
  /** Its last height, where it ends with the height. */
  readonly whole: number | undefined
}

/** Makes the tables that are missing. */
export async function ensureTables(client: ClickhouseClient): Promise<'done' | Refusal> {
  for (const statement of schemaStatements()) {
    const made = await client.write(statement)
    if (isRefusal(made)) return made
  }
  return 'done'
}

/**
 * Writes rows of the index into the tables in ClickHouse, height by height. What is written twice counts once, so a push that was
 * killed begins again behind the last record of whole heights.
 */
export class IndexPush {
  readonly #out = new RowBinaryWriter(1 << 22)
  readonly #keys = new Map<string, Uint8Array>()
  #block: { readonly height: number; readonly parts: BlockParts } | undefined
  #root: { readonly place: number; readonly id: Uint8Array } | undefined
  #rows = 0
  #leftOut = 0

  constructor(
    private readonly client: ClickhouseClient,
    private readonly index: ChainIndex,
    private readonly clock: Clock,
    private readonly limits: PushLimits = pushLimits,
  ) {}

  /**
   * Writes all rows of these heights, and records them. The next batch is made while one is written. `isLeading` is called before
   * each record: a writer that was replaced records nothing. Never rejects for what the server does.
   */
  async run(
    { from, to }: StableHeights,
    onProgress: (progress: PushProgress) => void,
    isLeading: () => Promise<boolean> = async () => true,
  ): Promise<PushProgress | Refusal | 'replaced'> {
    const before = await wholeHeights(this.client)
    if (isRefusal(before)) return before
    this.#rows = 0
    this.#leftOut = 0
    let done: PushProgress = { rows: 0, height: from - 1, leftOut: 0 }
    let version = before?.version ?? 0
    let writing: Promise<Refusal | 'done'> = Promise.resolve('done')
    let last: Batch | undefined
    const settle = async (): Promise<Refusal | 'done' | 'replaced'> => {
      const written = await writing
      if (isRefusal(written) || last?.whole === undefined) return written
      if (!(await isLeading())) return 'replaced'
      version = Math.max(this.clock.now(), version + 1)
      const recorded = await recordHeights(
        this.client,
        this.#extended(before, version, { from, to: last.whole }),
      )
      if (isRefusal(recorded)) return recorded
      done = { rows: this.#rows, height: last.whole, leftOut: this.#leftOut }
      onProgress(done)
      return 'done'
    }
    for (const batch of this.#batches(from, to)) {
      const settled = await settle()
      if (settled !== 'done') return settled
      this.#rows += batch.rows
      last = batch
      writing = this.#write(batch)
      // The request leaves before the next batch is made.
      await turn()
    }
    const settled = await settle()
    return settled === 'done' ? done : settled
  }

  /** The heights that were whole before this run, with those that it has written. */
  #extended(before: WholeHeights | undefined, version: number, { from, to }: StableHeights): WholeHeights {
    const isBeside = before !== undefined && from <= before.to + 1 && from >= before.from
    if (!isBeside) return { from, to, rows: this.#rows, version }
    const isMore = from === before.to + 1 && before.rows !== undefined
    const rows = isMore ? (before.rows ?? 0) + this.#rows : undefined
    return { from: before.from, to: Math.max(to, before.to), rows, version }
  }

  async #write({ bytes, rows }: Batch): Promise<'done' | Refusal> {
    if (rows === 0) return 'done'
    const tables = Object.keys(rowTables).reverse()
    // `transactions` is the last one: lists of a row are there before it, and its tags come with it.
    for (const table of tables) {
      const written = await this.client.write(`INSERT INTO ${table} FORMAT RowBinary`, bytes)
      if (isRefusal(written)) return written
    }
    return 'done'
  }

  *#batches(from: number, to: number): Generator<Batch> {
    let [rows, height] = [0, from]
    const cut = (whole: number | undefined): Batch => {
      const batch = { bytes: this.#out.written, rows, whole }
      this.#out.reset()
      rows = 0
      return batch
    }
    for (const row of this.#all(from, to)) {
      const isNext = row.height !== height
      const isFull = rows >= this.limits.rows || this.#out.size >= this.limits.bytes
      // A height with more rows than a batch is cut, and counts when its last part is there.
      const isHuge = rows >= this.limits.rows * 2 || this.#out.size >= this.limits.bytes * 2
      if (isNext && isFull) yield cut((row.height ?? from) - 1)
      else if (isHuge) yield cut(height > from ? height - 1 : undefined)
      height = row.height ?? height
      if (this.#put(row)) rows += 1
      else this.#leftOut += 1
    }
    yield cut(to)
  }

  *#all(from: number, to: number): Generator<Row> {
    let after: Uint8Array | undefined
    for (;;) {
      this.index.refresh()
      const rows = this.index.stretch(from, to, after, rowsEach)
      yield* rows
      const last = rows.at(-1)
      if (last === undefined || rows.length < rowsEach) return
      after = last.key
    }
  }

  #put(row: Row): boolean {
    const { height } = row
    if (height === undefined) return false
    if (this.#block?.height !== height) {
      const block = this.index.block(height)
      const parts = block === undefined ? { id: none, previous: none, timestamp: 0 } : blockParts(block)
      this.#block = { height, parts }
      this.#root = undefined
    }
    const about = {
      block: this.#block.parts,
      root: this.#rootOf(row),
      ownerKey: this.#keyOf(row),
      insertedSeconds: Math.floor(this.clock.now() / 1000),
    }
    return writeRow(this.#out, row, about)
  }

  /** The transaction comes before its items. */
  #rootOf(row: Row): Uint8Array {
    if (!row.isItem) {
      this.#root = { place: row.index, id: row.id }
      return row.id
    }
    if (this.#root?.place !== row.index) {
      this.#root = { place: row.index, id: this.index.rootOf(row)?.id ?? none }
    }
    return this.#root.id
  }

  #keyOf({ owner, signatureType }: Row): Uint8Array {
    // RSA keys are longer than the tables take.
    if (signatureType === undefined || signatureType === 1) return none
    const name = owner.toString('latin1')
    const known = this.#keys.get(name)
    if (known !== undefined) return known
    const key = this.index.ownerKey(owner)
    const kept = key === undefined || key.length > ownerKeyMaxBytes ? none : key
    if (this.#keys.size >= keysKept) this.#keys.clear()
    this.#keys.set(name, kept)
    return kept
  }
}
