import { rmSync } from 'node:fs'
import { type Clock, notBefore } from '../actor/clock.js'
import { type Log, silentLog } from '../actor/log.js'
import { type Id, idBytes, idOfBytes } from '../format/id.js'
import { type Refusal, refuse } from '../format/refusal.js'
import { DamagedSegment } from '../index/checked-file.js'
import { isDiskError } from '../store/disk-error.js'
import { countDiskError } from '../store/disk-errors.js'
import { isDamage, present } from '../store/lmdb.js'
import { CommitChanges, sumOfOutcomes } from './catalog-changes.js'
import type { CatalogReply, CatalogRequest } from './catalog-messages.js'
import {
  attributesIn,
  decodeBlob,
  encodeAttributes,
  encodeBlob,
  isInSegment,
  touchKey,
} from './catalog-record.js'
import type { Generations } from './generations.js'
import { openIndexTables } from './index-tables.js'
import { IndexWriter } from './index-writer.js'
import { addJudged, dropJudged } from './judged-items.js'
import { distrusted, merge, settled } from './merge.js'
import type { FlushLimits, Upkeep } from './segment-upkeep.js'
import type { SpillLimits } from './spill.js'
import { addBlobBytes, type CatalogTables, lastTouchMs, openCatalogTables } from './tables.js'

export interface CatalogKeeperOptions {
  /** Folder of the environment. */
  readonly path: string
  /** A blob's last use is only written when it moved by so much: a popular blob costs one write each so often. */
  readonly touchEveryMs: number
  /** When ids and words of the index leave their tables for files; small in tests. */
  readonly spill?: SpillLimits
  /** When stable rows of the index leave the tables for segments. Absent: never. */
  readonly flush?: FlushLimits
}

/** Between two steps about segments where no changes come: other threads go on meanwhile. */
const pauseMs = 10

/** Readers of other processes that have just read which files there are get so long to open them. */
const openMs = 5000

const committed: CatalogReply = { kind: 'committed' }
const unwritten = refuse('busy', 'self', 'the disk of the catalog is full or fails')
const unreadable = refuse('busy', 'self', 'a page of the catalog is damaged')

/** `refused`: by the disk. `damaged`: a page that is needed was overwritten. */
type Outcome = 'written' | 'refused' | 'damaged'

interface Waiting {
  readonly message: CatalogRequest
  readonly resolve: (reply: CatalogReply | Refusal) => void
}

/** The one writer of the catalog: everything waiting in a turn goes into one transaction, answered after its commit. */
export class CatalogKeeper {
  readonly #tables: CatalogTables
  /** Undefined after a change was undone: what it remembers of the tables was undone with them. */
  #index: IndexWriter | undefined
  /** The time of uses: by it blobs are evicted in order, whatever the system's clock does. */
  readonly #useMs: () => number
  #waiting: Waiting[] = []
  #scheduled = false
  #isTroubled = false
  #isClosed = false
  /** Segments are tended again soon. */
  #tending = false
  #isDamaged = false

  constructor(
    private readonly options: CatalogKeeperOptions,
    private readonly generations: Generations,
    private readonly clock: Clock,
    private readonly log: Pick<Log, 'error' | 'info' | 'warn'> = silentLog,
  ) {
    this.#tables = openCatalogTables(options.path)
    this.#useMs = notBefore(clock, lastTouchMs(this.#tables) ?? 0)
    this.#indexWriter()
  }

  /** The writer of the index, made anew where it is not there: that reads the disk, and may fail like any change. */
  #indexWriter(): IndexWriter {
    this.#index ??= new IndexWriter(
      openIndexTables(this.#tables.environment),
      this.options.spill,
      this.options.flush,
      this.log,
    )
    return this.#index
  }

  /**
   * Resolves after the commit that holds the change. `busy`: the disk is full or fails, or a page that the change needs is
   * damaged, and nothing of the change was written; who needs it says it again.
   */
  handle(message: CatalogRequest): Promise<CatalogReply | Refusal> {
    return new Promise((resolve) => {
      this.#waiting.push({ message, resolve })
      if (this.#scheduled) return
      this.#scheduled = true
      setImmediate(() => this.#commit())
    })
  }

  /** Commits what waits, where the disk takes it, and closes the environment. */
  async close(): Promise<void> {
    this.#commit()
    this.#isClosed = true
    this.#dropIndex()
    await this.#tables.environment.close()
  }

  #commit(): void {
    this.#scheduled = false
    const batch = this.#waiting
    if (batch.length === 0) return
    this.#waiting = []
    const outcome = this.#commitAll(batch)
    // What does not need the damaged page is written.
    if (outcome === 'damaged' && batch.length > 1)
      for (const one of batch) this.#refuse([one], this.#commitAll([one]))
    else this.#refuse(batch, outcome)
    const tended = this.#onDisk(() => {
      this.#indexWriter().tend()
      this.#dropFiles(this.#indexWriter().takeRetired())
    })
    this.#tendSegments()
    // Files may have nothing to write while the tables cannot.
    if (outcome !== 'refused' && tended === 'written') this.#isTroubled = false
  }

  /** Some of what is to be done about segments; the rest follows, between commits and with pauses. */
  #tendSegments(): void {
    // A damaged page would be met again and again.
    if (this.#tending || this.#isDamaged) return
    let upkeep: Upkeep = 'idle'
    const outcome = this.#onDisk(() => {
      const writer = this.#indexWriter()
      upkeep = writer.tendSegments()
      this.#dropFiles(writer.takeRetired())
    })
    if (outcome !== 'written' || upkeep === 'idle' || this.#isClosed) return
    // A list that changed is seen like any commit.
    this.generations.commit([])
    this.#tending = true
    this.clock.after(pauseMs, () => {
      this.#tending = false
      if (!this.#isClosed) this.#tendSegments()
    })
  }

  #refuse(batch: readonly Waiting[], outcome: Outcome): void {
    if (outcome === 'written') return
    for (const { resolve } of batch) resolve(outcome === 'damaged' ? unreadable : unwritten)
  }

  /** Applies all of them in one transaction, and answers them where it was written. */
  #commitAll(batch: readonly Waiting[]): Outcome {
    const changed = new CommitChanges()
    const replies: CatalogReply[] = []
    const outcome = this.#onDisk(() =>
      this.#tables.environment.write(() => {
        for (const { message } of batch) replies.push(this.#apply(message, changed))
        this.#indexWriter().settle()
      }),
    )
    if (outcome !== 'written') return outcome
    this.generations.commit(changed.ids, changed.shards)
    for (const [at, { resolve }] of batch.entries()) resolve(replies[at] ?? committed)
    return outcome
  }

  /** Does something that writes. Unless it is `written`, nothing of it counts. */
  #onDisk(act: () => void): Outcome {
    try {
      act()
      return 'written'
    } catch (error) {
      const damaged = isDamage(error) || error instanceof DamagedSegment
      if (!damaged && !isDiskError(error)) throw error
      if (damaged) this.#tellDamage(error)
      else {
        // Told once, until all goes well again.
        if (!this.#isTroubled) this.log.error({ err: error }, 'the disk of the catalog fails: changes wait')
        this.#isTroubled = true
      }
      this.#dropIndex()
      return damaged ? 'damaged' : 'refused'
    }
  }

  /** Drops what is half merged. */
  #dropIndex(): void {
    this.#index?.close()
    this.#index = undefined
  }

  /** A damaged page stays so until the folder is moved away, so it is logged once. */
  #tellDamage(error: unknown): void {
    this.generations.reportDamage()
    if (this.#isDamaged) return
    this.#isDamaged = true
    this.log.error(
      { err: error, path: this.options.path },
      'a page of the catalog is damaged: what it holds is not changed any more',
    )
  }

  /** Removes files that no list names: what is left of them is removed at the next start. */
  #dropFiles(paths: readonly string[]): void {
    if (paths.length === 0) return
    const drop = (): void => {
      try {
        for (const path of paths) rmSync(path, { force: true })
      } catch (error) {
        // The next start removes what no list names.
        if (!isDiskError(error)) throw error
        countDiskError(error)
      }
    }
    void this.#tables.environment.flushed().then(() => this.clock.after(openMs, drop))
  }

  #apply(message: CatalogRequest, changed: CommitChanges): CatalogReply {
    const [writer, now] = [this.#indexWriter(), this.#nowSeconds()]
    switch (message.kind) {
      case 'learn':
        for (const attributes of message.attributes) {
          this.#learn(attributes)
          changed.ids.add(attributes.id)
        }
        return committed
      case 'judged':
        // They would stay for ever where the bundle has left before.
        if (this.#tables.blobs.view(message.bundle) !== undefined)
          addJudged(this.#tables.judged, message.bundle, message.items)
        return committed
      case 'kept':
        this.#keep(message.digest, message.sizeBytes, message.isSmall === true)
        return committed
      case 'touched':
        for (const digest of message.digests) this.#touch(digest)
        return committed
      case 'dropped':
        this.#drop(message.digest)
        dropJudged(this.#tables.judged, message.digest)
        if (message.touchedMs !== undefined)
          this.#tables.touches.remove(touchKey(message.touchedMs, message.digest))
        return committed
      case 'distrust':
        this.#distrust(message.id)
        changed.ids.add(message.id)
        return committed
      case 'resigned':
        this.#tables.unsettled.remove(idBytes(message.id))
        return committed
      case 'forget-items': {
        const ids = Buffer.concat(message.ids.map(idBytes))
        const removal = { kind: 'remove-pending', ids } as const
        const index = writer.apply(removal, now, changed.row)
        for (const id of message.ids) {
          this.#forget(id)
          changed.ids.add(id)
        }
        return { kind: 'committed', index }
      }
      case 'all': {
        const done = message.requests.map((request) => this.#apply(request, changed).index)
        return { kind: 'committed', index: sumOfOutcomes(done) }
      }
      case 'unwind': {
        const removed = new Set<Id>()
        const index = writer.apply(message, now, (id) => removed.add(idOfBytes(id)))
        for (const id of removed) {
          this.#forgetHeight(id)
          changed.ids.add(id)
        }
        return { kind: 'committed', index }
      }
      default:
        return { kind: 'committed', index: writer.apply(message, now, changed.row) }
    }
  }

  #nowSeconds(): number {
    return Math.floor(this.clock.now() / 1000)
  }

  /** What stood on a block that is no longer on the chain is not final, wherever it comes to stand. */
  #forgetHeight(id: Id): void {
    const key = idBytes(id)
    const record = this.#tables.attributes.view(key)
    const known = record === undefined ? undefined : attributesIn(id, record)
    if (known?.height === undefined) return
    const { height: _height, ...rest } = known
    this.#tables.attributes.put(key, encodeAttributes(rest))
    if (!settled(rest)) this.#tables.unsettled.put(key, present)
  }

  #learn(learned: Parameters<typeof merge>[1]): void {
    const key = idBytes(learned.id)
    const record = this.#tables.attributes.view(key)
    const merged = merge(record === undefined ? undefined : attributesIn(learned.id, record), learned)
    this.#tables.attributes.put(key, encodeAttributes(merged))
    if (settled(merged)) this.#tables.unsettled.remove(key)
    else this.#tables.unsettled.put(key, present)
    if (merged.digest !== undefined) this.#hold(merged.id, merged.digest)
  }

  /** The blob is found by its digest through one id that has it: the first one, until it comes to mean other bytes. */
  #hold(id: Id, digest: Uint8Array): void {
    const record = this.#tables.blobs.view(digest)
    if (record === undefined) return
    const blob = decodeBlob(record)
    if (blob.holder === id || (blob.holder !== undefined && this.#hasDigest(blob.holder, digest))) return
    this.#tables.blobs.put(digest, encodeBlob({ ...blob, holder: id }))
  }

  #hasDigest(id: Id, digest: Uint8Array): boolean {
    const record = this.#tables.attributes.view(idBytes(id))
    const known = record === undefined ? undefined : attributesIn(id, record)?.digest
    return known !== undefined && Buffer.compare(known, digest) === 0
  }

  #distrust(id: Id): void {
    const key = idBytes(id)
    const record = this.#tables.attributes.view(key)
    const known = record === undefined ? undefined : attributesIn(id, record)
    const left = known === undefined ? undefined : distrusted(known)
    if (left === undefined) this.#tables.attributes.remove(key)
    else this.#tables.attributes.put(key, encodeAttributes(left))
    this.#tables.unsettled.remove(key)
  }

  #forget(id: Id): void {
    const key = idBytes(id)
    const record = this.#tables.attributes.view(key)
    const known = record === undefined ? undefined : attributesIn(id, record)
    if (known === undefined || known.verified || known.height !== undefined) return
    this.#tables.attributes.remove(key)
    this.#tables.unsettled.remove(key)
  }

  #keep(digest: Uint8Array, sizeBytes: number, isSmall: boolean): void {
    const record = this.#tables.blobs.view(digest)
    const before = record === undefined ? undefined : decodeBlob(record)
    if (before !== undefined && isInSegment(before) === isSmall) {
      this.#touch(digest)
      return
    }
    // It moves from a file into a segment, or back.
    if (before !== undefined) this.#drop(digest)
    const now = this.#useMs()
    const touchedMs = isSmall ? 0 : now
    const holder = before?.holder
    const blob = { sizeBytes, createdMs: before?.createdMs ?? now, touchedMs }
    this.#tables.blobs.put(digest, encodeBlob({ ...blob, ...(holder === undefined ? {} : { holder }) }))
    if (isSmall) return
    this.#tables.touches.put(touchKey(now, digest), present)
    addBlobBytes(this.#tables, sizeBytes)
  }

  #touch(digest: Uint8Array): void {
    const record = this.#tables.blobs.view(digest)
    if (record === undefined) return
    const blob = decodeBlob(record)
    if (isInSegment(blob)) return
    const now = this.#useMs()
    if (now - blob.touchedMs < this.options.touchEveryMs) return
    this.#tables.touches.remove(touchKey(blob.touchedMs, digest))
    this.#tables.touches.put(touchKey(now, digest), present)
    this.#tables.blobs.put(digest, encodeBlob({ ...blob, touchedMs: now }))
  }

  #drop(digest: Uint8Array): void {
    const record = this.#tables.blobs.view(digest)
    if (record === undefined) return
    const blob = decodeBlob(record)
    this.#tables.blobs.remove(digest)
    if (isInSegment(blob)) return
    this.#tables.touches.remove(touchKey(blob.touchedMs, digest))
    addBlobBytes(this.#tables, -blob.sizeBytes)
  }
}
