import { randomBytes } from 'node:crypto'
import { type Refusal, refuse } from '../format/refusal.js'
import { BulkBatch, type BulkLimits } from './bulk-batch.js'
import type { BulkPart, BulkReply, BulkRequest } from './bulk-protocol.js'
import type { BulkTotals } from './bulk-totals.js'
import type { Prepared } from './bulk-writer.js'
import { CommitChanges } from './catalog-changes.js'
import type { CatalogReply, CatalogRequest } from './catalog-messages.js'
import { unwrittenReply, type WriteOutcome } from './catalog-outcome.js'
import type { Generations } from './generations.js'
import type { IndexWriter } from './index-writer.js'

const over = refuse(
  'defect',
  'self',
  'the import in bulk is over: what it brought and is not listed was lost',
)
const tooLarge = refuse('too-large', 'client', 'a request in bulk has more rows or words than a segment')

/** What the keeper does for an import in bulk. */
export interface BulkHost {
  /** Does something that reads or writes the catalog. */
  onDisk(act: () => void): WriteOutcome
  writer(): IndexWriter
  /** Sees the last commit from here on. */
  refresh(): void
  nowSeconds(): number
  /** Inside a transaction. */
  apply(request: CatalogRequest, changed: CommitChanges): void
}

/** What became of a request: a reply, or the same request through the tables. */
export interface BulkDone {
  readonly outcome: WriteOutcome
  readonly reply?: CatalogReply | Refusal
  readonly throughTables?: readonly BulkPart[]
}

/** Whether a request is one of an import in bulk. */
export function isBulk(message: CatalogRequest): message is BulkRequest {
  const { kind } = message
  return kind === 'bulk-begin' || kind === 'bulk' || kind === 'bulk-end'
}

const aside: ReadonlySet<CatalogRequest['kind']> = new Set([
  'learn',
  'judged',
  'kept',
  'touched',
  'dropped',
  'distrust',
  'resigned',
  'index-owners',
])

/** Whether a request may change or need rows or blocks of the index. */
export function changesRows(message: CatalogRequest): boolean {
  return message.kind === 'all' ? message.requests.some(changesRows) : !aside.has(message.kind)
}

/**
 * The import in bulk that is under way, if there is one: only the keeper. What was taken is lost where the process ends, or where
 * a page of the catalog is damaged that is needed: then the session is over, and nothing more of it is taken. So what is in the
 * index of a session is always its beginning.
 */
export class BulkSession {
  #batch: BulkBatch
  #session: number | undefined
  #taken = 0
  #listed = 0
  #totals: BulkTotals | undefined

  constructor(
    private readonly limits: BulkLimits,
    private readonly generations: Generations,
    private readonly host: BulkHost,
  ) {
    this.#batch = new BulkBatch(limits)
  }

  /** Nothing waits for being listed. */
  get isEmpty(): boolean {
    return this.#batch.isEmpty
  }

  /** Does what a request asks for, and names what must go through the tables. */
  handle(message: BulkRequest): BulkDone {
    if (message.kind !== 'bulk-begin' && message.session !== this.#session)
      return { outcome: 'written', reply: over }
    // A full one could not be written before.
    if (message.kind === 'bulk' && !this.#batch.isFull) return this.#take(message.parts)
    const outcome = this.finish()
    if (outcome !== 'written') return { outcome, reply: unwrittenReply(outcome) }
    if (message.kind === 'bulk') return this.#take(message.parts)
    // The memory of the batch is not needed any more.
    this.#batch = new BulkBatch(this.limits)
    if (message.kind === 'bulk-begin') {
      this.#session = randomBytes(6).readUIntBE(0, 6)
      this.#taken = 0
      this.#listed = 0
      const now = this.host.nowSeconds()
      this.#totals = { rows: 0, batches: 0, beganSeconds: now, listedSeconds: now, batchBytesMax: 0 }
    }
    return { outcome, reply: { kind: 'committed', bulk: this.#reply() } }
  }

  #take(parts: readonly BulkPart[]): BulkDone {
    if (this.limits.rows === 0) return { outcome: 'written', throughTables: parts }
    const prepared = this.#prepare(parts)
    if (typeof prepared === 'string') return this.#lose(prepared)
    if (prepared === undefined) return { outcome: 'written', throughTables: parts }
    const { rowsMax, wordsMax } = prepared
    if (!this.#batch.hasRoom(rowsMax, wordsMax)) {
      const outcome = this.finish()
      if (outcome !== 'written') return { outcome, reply: unwrittenReply(outcome) }
      if (!this.#batch.hasRoom(rowsMax, wordsMax)) return { outcome, reply: tooLarge }
    }
    let reply: CatalogReply = { kind: 'committed' }
    const outcome = this.host.onDisk(() => {
      this.host.refresh()
      const index = this.host.writer().bulk.take(this.#batch, prepared, this.host.nowSeconds())
      reply = { kind: 'committed', index }
    })
    if (outcome !== 'written') return this.#lose(outcome)
    this.#taken += 1
    // Where it cannot be written, the next request waits for it.
    if (this.#batch.isFull) this.finish()
    return { outcome, reply: { ...reply, bulk: this.#reply() } }
  }

  /** Undefined: it must go through the tables. */
  #prepare(parts: readonly BulkPart[]): Prepared | undefined | Exclude<WriteOutcome, 'written'> {
    let prepared: Prepared | undefined
    const outcome = this.host.onDisk(() => {
      this.host.refresh()
      prepared = this.host.writer().bulk.prepare(this.#batch, parts)
    })
    return outcome === 'written' ? prepared : outcome
  }

  #lose(outcome: Exclude<WriteOutcome, 'written'>): BulkDone {
    this.#batch = new BulkBatch(this.limits)
    this.#session = undefined
    return { outcome, reply: over }
  }

  /** Writes what was taken, and lists it. `refused`: it stays, and is written later. */
  finish(): WriteOutcome {
    const batch = this.#batch
    if (batch.isEmpty) return 'written'
    const changed = new CommitChanges()
    const totals = this.#totalsWith(batch)
    const outcome = this.host.onDisk(() => {
      this.host.refresh()
      const writer = this.host.writer()
      writer.bulk.list(batch, writer.bulk.write(batch), totals, () => {
        for (const request of batch.asides) this.host.apply(request, changed)
        writer.settle()
      })
      writer.addedInBulk(batch.count)
    })
    if (outcome === 'damaged') this.#lose(outcome)
    if (outcome !== 'written') return outcome
    for (const shard of batch.shards()) changed.shard(shard)
    this.generations.commit(changed.ids, changed.shards)
    this.#totals = totals
    batch.clear()
    this.#listed = this.#taken
    return outcome
  }

  #totalsWith({ count, bytes }: BulkBatch): BulkTotals {
    const now = this.host.nowSeconds()
    const before = this.#totals ?? { rows: 0, batches: 0, beganSeconds: now, batchBytesMax: 0 }
    return {
      rows: before.rows + count,
      batches: before.batches + 1,
      beganSeconds: before.beganSeconds,
      // Never before the begin, also where the clock was set back.
      listedSeconds: Math.max(before.beganSeconds, now),
      batchBytesMax: Math.max(before.batchBytesMax, bytes),
    }
  }

  /** A request of the session was committed through the tables. */
  passed(): BulkReply {
    this.#taken += 1
    this.#listed = this.#taken
    return this.#reply()
  }

  #reply(): BulkReply {
    if (this.#batch.isEmpty) this.#listed = this.#taken
    return { session: this.#session ?? 0, taken: this.#taken, listed: this.#listed }
  }
}
