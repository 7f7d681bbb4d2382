import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { type Clock, isWithin } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { ChainIndex } from '../catalog/index-reader.js'
import type { Row } from '../catalog/row.js'
import { isBug } from '../format/bug.js'
import { isRefusal } from '../format/refusal.js'
import { isDiskError } from '../store/disk-error.js'
import type { BandStore } from './band-store.js'
import { type IndexManifest, manifestName, readIndexManifest } from './index-manifest.js'
import { type HeightRange, rootTxKind, type StoredBand } from './publication.js'
import {
  type PlannedBand,
  parseRootBandId,
  planRootBands,
  type RootBandName,
  rootBandId,
} from './root-plan.js'
import { pathMax, type RootRecord } from './root-record.js'
import { bandIdDigest, RootIndexWriter } from './root-writer.js'

export interface RootBuildOptions {
  /** Who publishes, in any words; 8 digits of its digest stand in each id. */
  readonly publisher: string
  /** Blocks of one history band. */
  readonly historyBlocks: number
  readonly recentEveryMs: number
  readonly deltaEveryMs: number
  /** Blocks behind the tip that no fork reaches. */
  readonly forkDepth: number
}

/** Items read in one turn of the thread. */
const turnRows = 2000
/** Paths of bundles remembered at once, some 100 bytes each. */
const pathsMax = 10_000

/** Builds bands of root transactions from the index of the chain. */
export class RootBuilder {
  readonly #tag: string
  #paths = new Map<string, readonly Uint8Array[] | undefined>()
  /** When a delta or a recent band was last tried: one that came out as before is not tried again at once. */
  readonly #tried = new Map<string, number>()

  constructor(
    private readonly bandStore: BandStore,
    private readonly index: ChainIndex,
    private readonly clock: Clock,
    private readonly log: Log,
    private readonly options: RootBuildOptions,
  ) {
    this.#tag = createHash('sha256').update(options.publisher).digest('hex').slice(0, 8)
  }

  /** Builds what is due, or with `force` whatever can be built; the ids that are new. Rejects where disk or index fail. */
  async build(force: boolean): Promise<string[]> {
    this.index.refresh()
    const [first] = this.index.blocks(0, Number.MAX_SAFE_INTEGER, false, 1)
    const tip = this.index.topHeight()
    if (first === undefined || tip === undefined) return []
    const stored = (await this.bandStore.list('own')).filter(({ index }) => index === rootTxKind.index)
    const present = stored.flatMap(({ id }) => parseRootBandId(id) ?? [])
    const { recentEveryMs, deltaEveryMs, historyBlocks, forkDepth } = this.options
    const due = {
      recent: force || (await this.#isDue('r', present, stored, recentEveryMs)),
      delta: force || (await this.#isDue('d', present, stored, deltaEveryMs)),
    }
    const heights = { start: first.height, stable: tip - forkDepth, tip }
    const built: string[] = []
    for (const band of planRootBands(present, heights, due, historyBlocks)) {
      try {
        const id = await this.#build(band, tip, stored)
        if (id !== undefined) built.push(id)
      } catch (error) {
        if (isBug(error) || isDiskError(error)) throw error
        // One that cannot be built keeps no other one back.
        const { role, range } = band
        this.log.error({ err: error, role, range }, 'a band could not be built')
      }
    }
    return built
  }

  async #isDue(
    role: 'r' | 'd',
    present: readonly RootBandName[],
    stored: readonly StoredBand[],
    everyMs: number,
  ): Promise<boolean> {
    const now = this.clock.now()
    const triedMs = this.#tried.get(role)
    if (triedMs !== undefined && this.clock.monotonic() - triedMs < everyMs) return false
    for (const { id } of present.filter((band) => band.role === role)) {
      const folder = stored.find((band) => band.id === id)?.folder
      if (folder !== undefined && isWithin(now, await createdAt(folder), everyMs)) return false
    }
    return true
  }

  /** Builds one band; undefined where it, or one with the same records in its place, is there already. */
  async #build(
    { role, range, supersedes }: PlannedBand,
    tip: number,
    stored: readonly StoredBand[],
  ): Promise<string | undefined> {
    const started = this.clock.monotonic()
    this.#tried.set(role, started)
    const draft = await this.bandStore.draft()
    const writer = new RootIndexWriter(draft)
    try {
      await this.#feed(writer, range[0], range[1] ?? tip)
      const metadata = { heightRange: range, ...(supersedes.length === 0 ? {} : { supersedes }) }
      const createdAt = new Date(this.clock.now()).toISOString()
      const { records, contentDigest } = await writer.finish(createdAt, metadata)
      const idWith = (fields: Readonly<Record<string, unknown>>): string =>
        rootBandId(role, range, this.#tag, bandIdDigest(contentDigest, fields))
      const before = stored.filter((band) => supersedes.includes(band.id))
      for (const { id, folder } of before) {
        // The id depends on what the band supersedes too: the same records under a new id would be fetched again for nothing.
        if (idWith((await manifestOf(folder))?.metadata ?? {}) !== id) continue
        await this.bandStore.discard(draft)
        return undefined
      }
      const id = idWith(metadata)
      if (!(await this.bandStore.place(draft, 'own', rootTxKind.index, id))) return undefined
      const ms = Math.round(this.clock.monotonic() - started)
      if (writer.leftOut > 0)
        this.log.warn({ band: id, records: writer.leftOut }, 'records were left out, whose ids crowd a table')
      this.log.info({ band: id, records, ms }, 'a band was built')
      return id
    } catch (error) {
      writer.close()
      await this.bandStore.discard(draft)
      throw error
    } finally {
      this.#paths = new Map()
    }
  }

  /** Every item between two heights, in chain order; the catalog may grow meanwhile. */
  async #feed(writer: RootIndexWriter, from: number, to: HeightRange[0]): Promise<void> {
    let root: Row | undefined
    let after: Uint8Array | undefined
    for (;;) {
      this.index.refresh()
      const rows = this.index.stretch(from, to, after, turnRows, false)
      for (const row of rows) {
        if (!row.isItem) root = row
        else if (root !== undefined && root.height === row.height && root.index === row.index) {
          const place = this.#placeOf(row, root)
          if (place !== undefined) writer.add(row.id, place, row.height ?? 0)
        }
      }
      after = rows.at(-1)?.key
      if (after === undefined) return
      await turn()
    }
  }

  #placeOf(row: Row, root: Row): RootRecord | undefined {
    const { place, size } = row
    if (place === undefined) return undefined
    const path = this.#pathTo(row, place.parent)
    if (path === undefined || path.length > pathMax || Buffer.compare(path[0] ?? root.id, root.id) !== 0) {
      return undefined
    }
    const { rootItemOffset: itemOffset, headerSize } = place
    return { path, itemOffset, dataOffset: itemOffset + headerSize, itemSize: headerSize + size }
  }

  /** Neighbours have their bundles in common. */
  #pathTo(row: Row, parentId: Buffer): readonly Uint8Array[] | undefined {
    const parent = parentId.toString('latin1')
    if (this.#paths.has(parent)) return this.#paths.get(parent)
    const path = this.index.pathOf(row)?.map(({ id }) => id)
    if (this.#paths.size >= pathsMax) this.#paths = new Map()
    this.#paths.set(parent, path)
    return path
  }
}

async function manifestOf(folder: string): Promise<IndexManifest | undefined> {
  const manifest = readIndexManifest(await readFile(join(folder, manifestName)))
  return isRefusal(manifest) ? undefined : manifest
}

async function createdAt(folder: string): Promise<number> {
  const time = Date.parse((await manifestOf(folder))?.createdAt ?? '')
  return Number.isNaN(time) ? Number.NEGATIVE_INFINITY : time
}
