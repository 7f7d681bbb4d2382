import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { synced } from '../store/synced.js'
import { type ExportTable, exportColumns } from './export-layout.js'
import type { ParquetRow } from './l1-layout.js'
import { ParquetFile } from './parquet-writer.js'

/** A group is written in one go: some 0.1 s of this thread, which has other work. */
const groupRows = 8192
const draftName = '.draft-'

/** Heights whose rows share a folder (`from` to `to`), and those of them that are written; all inclusive. */
export interface ExportPartition {
  readonly from: number
  readonly to: number
  readonly first: number
  readonly last: number
}

/** A file that is being written. */
interface Open {
  readonly file: ParquetFile
  /** 1: the first of its table and partition. */
  readonly part: number
  rows: number
}

/**
 * The files of one export: `{folder}/{table}/data/height={from}-{to}/{table}_{first}_{last}[_{part}]_{job}.parquet`.
 * They are written into a draft folder beside, and renamed to their place when the last one is complete, so that a
 * partial export is never visible.
 */
export class ExportFiles {
  readonly #draft: string
  /** Where each draft belongs. */
  readonly #places = new Map<string, string>()
  readonly #open = new Map<ExportTable, Open>()
  #partition: ExportPartition | undefined

  constructor(
    private readonly folder: string,
    private readonly jobId: string,
    private readonly maxFileRows: number,
  ) {
    this.#draft = join(folder, draftName + jobId)
  }

  /** Files so far. */
  get count(): number {
    return this.#places.size
  }

  /** Makes the folders, and removes drafts of a killed process, which is safe because there is one export at a time. */
  async prepare(): Promise<void> {
    await mkdir(this.folder, { recursive: true })
    for (const name of await readdir(this.folder)) {
      if (name.startsWith(draftName)) await rm(join(this.folder, name), { recursive: true })
    }
    await mkdir(this.#draft)
  }

  /** The rows that follow belong to this partition. */
  async begin(partition: ExportPartition): Promise<void> {
    await this.#finishAll()
    this.#partition = partition
  }

  push(table: ExportTable, row: ParquetRow): void {
    let open = this.#open.get(table)
    if (open !== undefined && open.rows === this.maxFileRows) open.file.end()
    if (open === undefined || open.rows === this.maxFileRows) {
      open = this.#create(table, (open?.part ?? 0) + 1)
      this.#open.set(table, open)
    }
    open.file.push(row)
    open.rows += 1
  }

  /** Puts everything in place: on disk when it resolves. */
  async finish(): Promise<void> {
    await this.#finishAll()
    const folders = new Set([...this.#places.values()].map((path) => dirname(path)))
    for (const folder of folders) await mkdir(folder, { recursive: true })
    // Asynchronous: a busy disk would block the thread.
    for (const draft of this.#places.keys()) await synced(draft)
    for (const [draft, path] of this.#places) await rename(draft, path)
    for (const folder of folders) await synced(folder)
    await this.drop()
  }

  /** Removes what is not in place. */
  async drop(): Promise<void> {
    await rm(this.#draft, { recursive: true, force: true })
  }

  #create(table: ExportTable, part: number): Open {
    if (this.#partition === undefined) throw new Error('rows of no partition')
    const { from, to, first, last } = this.#partition
    const more = part === 1 ? '' : `_${part}`
    const name = `${table}_${first}_${last}${more}_${this.jobId}.parquet`
    const draft = join(this.#draft, name)
    this.#places.set(draft, join(this.folder, table, 'data', `height=${from}-${to}`, name))
    return { file: new ParquetFile(draft, exportColumns[table], groupRows), part, rows: 0 }
  }

  async #finishAll(): Promise<void> {
    for (const { file } of this.#open.values()) {
      file.end()
      await turn()
    }
    this.#open.clear()
  }
}
