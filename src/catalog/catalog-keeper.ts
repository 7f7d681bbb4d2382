import { rmSync } from 'node:fs'
import type { Clock } from '../actor/clock.js'
import { type Log, silentLog } from '../actor/log.js'
import { type Id, idBytes, idOfBytes } from '../format/id.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import { DamagedSegment } from '../index/checked-file.js'
import { isDiskError } from '../store/disk-error.js'
import { countDiskError } from '../store/disk-errors.js'
import { isDamage } from '../store/lmdb.js'
import { AttributeWriter } from './attribute-writer.js'
import { BlobRecordWriter } from './blob-record-writer.js'
import { type BulkLimits, bulkLimits } from './bulk-batch.js'
import type { BulkRequest } from './bulk-protocol.js'
import { BulkSession, changesRows, isBulk } from './bulk-session.js'
import { CommitChanges, sumOfOutcomes } from './catalog-changes.js'
import type { CatalogReply, CatalogRequest } from './catalog-messages.js'
import { unwrittenReply, type WriteOutcome } from './catalog-outcome.js'
import type { Generations } from './generations.js'
import { openIndexTables } from './index-tables.js'
import { IndexWriter } from './index-writer.js'
import { addJudged, dropJudged } from './judged-items.js'
import { type FlushLimits, type Upkeep, UpkeepFaults } from './segment-upkeep.js'
import type { SpillLimits } from './spill.js'
import { type CatalogTables, openCatalogTables } from './tables.js'

export interface CatalogKeeperOptions {
  /** Folder of the environment. */
  readonly path: string
  /** A blob's last use is only written when it moved by so much: a popular blob costs one write each so often. */
  readonly touchEveryMs: number
  /** When ids and words of the index leave their tables for files; small in tests. */
  readonly spill?: SpillLimits
  /** When stable rows of the index leave the tables for segments. Absent: never. */
  readonly flush?: FlushLimits
  /** When what is imported in bulk becomes a segment; small in tests. */
  readonly bulk?: BulkLimits
}

/** Between two steps about segments where no changes come: other threads go on meanwhile. */
const pauseMs = 10

/** Readers of other processes that have just read which files there are get so long to open them. */
const openMs = 5000

/** The rows of a bulk: as many as a flush puts into a segment. Where none leave the tables, all go through them. */
function bulkLimitsOf(flush: FlushLimits | undefined): BulkLimits {
  return flush === undefined ? bulkLimits : { ...bulkLimits, rows: flush.rows }
}

const committed: CatalogReply = { kind: 'committed' }
interface Waiting {
  readonly message: CatalogRequest
  readonly resolve: (reply: CatalogReply | Refusal) => void
}

/** The one writer of the catalog: everything waiting in a turn goes into one transaction, answered after its commit. */
export class CatalogKeeper {
  readonly #tables: CatalogTables
  readonly #attributes: AttributeWriter
  readonly #blobs: BlobRecordWriter
  readonly #bulk: BulkSession
  /** Undefined after its files or segments could not be written: it begins anew. */
  #index: IndexWriter | undefined
  #waiting: Waiting[] = []
  #scheduled = false
  #isTroubled = false
  #isClosed = false
  /** Segments are tended again soon. */
  #tending = false
  /** Where damaged pages were met that are in the log: the database, or a segment. */
  readonly #damaged = new Set<string>()
  readonly #faults = new UpkeepFaults(() => this.generations.damages)

  constructor(
    private readonly options: CatalogKeeperOptions,
    private readonly generations: Generations,
    private readonly clock: Clock,
    private readonly log: Pick<Log, 'error' | 'info' | 'warn'> = silentLog,
  ) {
    this.#tables = openCatalogTables(options.path)
    this.#attributes = new AttributeWriter(this.#tables)
    this.#blobs = new BlobRecordWriter(this.#tables, clock, options.touchEveryMs)
    this.#bulk = new BulkSession(options.bulk ?? bulkLimitsOf(options.flush), generations, {
      onDisk: (act) => this.#onDisk(act),
      writer: () => this.#indexWriter(),
      refresh: () => this.#tables.environment.refresh(),
      nowSeconds: () => this.#nowSeconds(),
      apply: (request, changed) => this.#apply(request, changed),
    })
    this.#indexWriter()
  }

  /** The writer of the index, made anew where it is not there: that reads the disk, and may fail like any change. */
  #indexWriter(): IndexWriter {
    this.#index ??= new IndexWriter(
      openIndexTables(this.#tables.environment),
      this.options.spill,
      this.options.flush,
      this.log,
      this.#faults,
    )
    return this.#index
  }

  /**
   * Resolves after the commit that holds the change. `busy`: nothing of the change was written, because the disk is full or
   * fails, or a page that the change needs is damaged. Who needs the change sends it again.
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
    this.#bulk.finish()
    this.#isClosed = true
    this.#dropIndex()
    await this.#tables.environment.close()
  }

  #commit(): void {
    this.#scheduled = false
    const batch = this.#waiting
    if (batch.length === 0) return
    this.#waiting = []
    const outcome = this.#handleAll(batch)
    const tended = this.#onDisk(() => {
      this.#indexWriter().tend()
      this.#dropFiles(this.#indexWriter().takeRetired())
    })
    this.#tendSegments()
    // Files may have nothing to write while the tables cannot.
    if (outcome !== 'refused' && tended === 'written') this.#isTroubled = false
  }

  /** In order. Requests that follow each other are one transaction. */
  #handleAll(batch: readonly Waiting[]): WriteOutcome {
    let outcome: WriteOutcome = 'written'
    let together: Waiting[] = []
    const note = (one: WriteOutcome): boolean => {
      if (one === 'refused') outcome = one
      return one === 'written'
    }
    const commit = (): void => {
      if (together.length > 0) note(this.#commitTogether(together))
      together = []
    }
    for (const one of batch) {
      const { message } = one
      const inBulk = isBulk(message)
      const isBehind = !inBulk && !this.#bulk.isEmpty && changesRows(message)
      if (inBulk || isBehind) commit()
      if (inBulk) note(this.#inBulk(message, one.resolve))
      // What was taken in bulk comes into the index first.
      else if (!isBehind || note(this.#finishBulk([one]))) together.push(one)
    }
    commit()
    return outcome
  }

  #commitTogether(batch: readonly Waiting[]): WriteOutcome {
    const outcome = this.#commitAll(batch)
    // What does not need the damaged page is written.
    if (outcome === 'damaged' && batch.length > 1)
      for (const one of batch) this.#refuse([one], this.#commitAll([one]))
    else this.#refuse(batch, outcome)
    return outcome
  }

  #finishBulk(behind: readonly Waiting[]): WriteOutcome {
    const outcome = this.#bulk.finish()
    this.#refuse(behind, outcome)
    return outcome
  }

  #inBulk(message: BulkRequest, resolve: Waiting['resolve']): WriteOutcome {
    const done = this.#bulk.handle(message)
    if (done.reply !== undefined) resolve(done.reply)
    if (done.throughTables === undefined) return done.outcome
    const requests = done.throughTables
    const one: Waiting = {
      message: { kind: 'all', requests },
      resolve: (reply) => resolve(isRefusal(reply) ? reply : { ...reply, bulk: this.#bulk.passed() }),
    }
    const outcome = this.#finishBulk([one])
    return outcome === 'written' ? this.#commitTogether([one]) : outcome
  }

  /** Some of what is to be done about segments; the rest follows, between commits and with pauses. */
  #tendSegments(): void {
    if (this.#tending) return
    const stopped = this.#faults.count
    let upkeep: Upkeep = 'idle'
    const outcome = this.#onDisk(() => {
      const writer = this.#indexWriter()
      upkeep = writer.tendSegments()
      this.#dropFiles(writer.takeRetired())
    })
    const isLessLeft = outcome === 'damaged' && this.#faults.count > stopped
    if (this.#isClosed || (!isLessLeft && (outcome !== 'written' || upkeep === 'idle'))) return
    // A list that changed is seen like any commit.
    this.generations.commit([])
    this.#tending = true
    this.clock.after(pauseMs, () => {
      this.#tending = false
      if (!this.#isClosed) this.#tendSegments()
    })
  }

  #refuse(batch: readonly Waiting[], outcome: WriteOutcome): void {
    if (outcome === 'written') return
    for (const { resolve } of batch) resolve(unwrittenReply(outcome))
  }

  /** Applies all of them in one transaction, and answers them where it was written. */
  #commitAll(batch: readonly Waiting[]): WriteOutcome {
    const changed = new CommitChanges()
    const replies: CatalogReply[] = []
    const outcome = this.#onDisk(
      () =>
        this.#tables.environment.write(() => {
          for (const { message } of batch) replies.push(this.#apply(message, changed))
          this.#indexWriter().settle()
        }),
      () => this.#index?.undone(),
    )
    if (outcome !== 'written') return outcome
    this.generations.commit(changed.ids, changed.shards)
    for (const [at, { resolve }] of batch.entries()) resolve(replies[at] ?? committed)
    return outcome
  }

  /** Does something that writes. Unless it is `written`, nothing of it counts: `undo` forgets what was remembered of it. */
  #onDisk(act: () => void, undo = (): void => this.#dropIndex()): WriteOutcome {
    try {
      act()
      return 'written'
    } catch (error) {
      const damaged = isDamage(error) || error instanceof DamagedSegment
      if (!damaged && !isDiskError(error)) throw error
      if (damaged) this.#tellDamage(error)
      else {
        // Logged once, until all goes well again.
        if (!this.#isTroubled) this.log.error({ err: error }, 'the disk of the catalog fails: changes wait')
        this.#isTroubled = true
      }
      undo()
      return damaged ? 'damaged' : 'refused'
    }
  }

  /** Drops what is half merged. */
  #dropIndex(): void {
    this.#index?.close()
    this.#index = undefined
  }

  /** A damaged page stays so until the folder is moved away, so it is logged once for each file. */
  #tellDamage(error: unknown): void {
    this.generations.reportDamage()
    const path = error instanceof DamagedSegment ? error.path : this.options.path
    if (this.#damaged.has(path)) return
    this.#damaged.add(path)
    this.log.error(
      { err: error, path },
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
    if (isBulk(message)) throw new Error('an import in bulk is no part of another request')
    const [writer, now] = [this.#indexWriter(), this.#nowSeconds()]
    switch (message.kind) {
      case 'learn':
        for (const attributes of message.attributes) {
          this.#attributes.learn(attributes)
          changed.ids.add(attributes.id)
        }
        return committed
      case 'judged':
        // They would stay for ever where the bundle has left before.
        if (this.#tables.blobs.view(message.bundle) !== undefined)
          addJudged(this.#tables.judged, message.bundle, message.items)
        return committed
      case 'kept':
        this.#blobs.keep(message.digest, message.sizeBytes, message.isSmall === true)
        return committed
      case 'touched':
        for (const digest of message.digests) this.#blobs.touch(digest)
        return committed
      case 'dropped':
        this.#blobs.drop(message.digest, message.touchedMs)
        dropJudged(this.#tables.judged, message.digest)
        return committed
      case 'distrust':
        this.#attributes.distrust(message.id)
        changed.ids.add(message.id)
        return committed
      case 'resigned':
        this.#tables.unsettled.remove(idBytes(message.id))
        return committed
      case 'forget-items':
        return this.#forgetItems(message.ids, changed)
      case 'all': {
        const done = message.requests.map((request) => this.#apply(request, changed).index)
        return { kind: 'committed', index: sumOfOutcomes(done) }
      }
      case 'unwind': {
        const removed = new Set<Id>()
        const index = writer.apply(message, now, (id) => removed.add(idOfBytes(id)))
        for (const id of removed) {
          this.#attributes.forgetHeight(id)
          changed.ids.add(id)
        }
        return { kind: 'committed', index }
      }
      default:
        return { kind: 'committed', index: writer.apply(message, now, changed.row) }
    }
  }

  #forgetItems(ids: readonly Id[], changed: CommitChanges): CatalogReply {
    const removal = { kind: 'remove-pending', ids: Buffer.concat(ids.map(idBytes)) } as const
    const index = this.#indexWriter().apply(removal, this.#nowSeconds(), changed.row)
    for (const id of ids) {
      this.#attributes.forget(id)
      changed.ids.add(id)
    }
    return { kind: 'committed', index }
  }

  #nowSeconds(): number {
    return Math.floor(this.clock.now() / 1000)
  }
}
