import { randomBytes } from 'node:crypto'
import type { Clock, Timer } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { Outage } from '../actor/outage.js'
import { whileDiskTakes } from '../store/disk-error.js'
import { type Environment, openEnvironment, type Table } from '../store/lmdb.js'
import { Key, readSecret, type Secret } from './bucket-key.js'
import type { KeeperReply, KeeperRequest } from './bucket-messages.js'
import { BucketRefill } from './bucket-refill.js'
import {
  bucketRow,
  bucketRowKey,
  paymentKey,
  paymentRow,
  readBucketRow,
  readBucketRowKey,
  readPaymentMs,
} from './bucket-rows.js'
import { grainsPerToken } from './bucket-table.js'
import type { BucketKind, BucketRules } from './buckets.js'
import type { KeptTable, Slot } from './kept-table.js'

export interface KeeperOptions {
  /** Folder of the environment. */
  readonly path: string
  /** Interval at which takes are written to disk: a killed process loses at most the takes of one interval. */
  readonly saveEveryMs: number
}

interface Waiting {
  readonly credit: KeeperRequest
  readonly resolve: (reply: KeeperReply) => void
}

/** A disk that took nothing is tried again after so long. */
const againMs = 1000
/** Rows looked at for being outdated, each minute. */
const pruneRows = 10_000
/** How long payments are remembered. Their validity is minutes, and the chain refuses to settle one again. */
const paymentKeptMs = 366 * 86_400_000
/** Larger numbers would not stay exact. */
const paidMax = 2 ** 52

/**
 * The only writer of the buckets' disk storage. It refills buckets (`BucketRefill`), adds paid
 * tokens after they are on disk, saves takes, and frees full buckets.
 *
 * After a kill -9 all paid tokens are there, and those spent in the last `saveEveryMs` are there again. A bucket may have more
 * regular tokens than before: those taken in that time, or a hundredth of its capacity, whichever is more.
 */
export class BucketKeeper {
  readonly secret: Secret
  readonly #environment: Environment
  readonly #rows: Table
  readonly #payments: Table
  readonly #timers: Timer[]
  readonly #refill: BucketRefill
  #cursor: { table: 'rows' | 'payments'; key?: Uint8Array } = { table: 'rows' }
  #waiting: Waiting[] = []
  /** While the disk is full or fails. */
  #again: Timer | undefined
  readonly #disk: Outage

  /** Loads what the disk knows into the tables, which are empty. */
  constructor(
    options: KeeperOptions,
    private readonly tables: Readonly<Record<BucketKind, KeptTable>>,
    private readonly clock: Clock,
    private readonly log: Pick<Log, 'error' | 'warn' | 'info'>,
  ) {
    const down = 'the disk of the buckets is full or fails: paid tokens wait, takes are not saved'
    this.#disk = new Outage(log, down, 'the disk of the buckets takes changes again')
    this.#environment = openEnvironment(options.path)
    this.#rows = this.#environment.table('buckets')
    this.#payments = this.#environment.table('payments')
    this.secret = this.#readSecret()
    this.#load()
    this.#refill = new BucketRefill(tables, clock)
    this.#timers = [
      clock.every(options.saveEveryMs, () => this.save()),
      clock.every(60_000, () => this.#prune()),
    ]
  }

  /** Resolves after the commit that holds the change. It was paid for: a disk that is full or fails is waited for. */
  handle(credit: KeeperRequest): Promise<KeeperReply> {
    return new Promise((resolve) => {
      this.#waiting.push({ credit, resolve })
      if (this.#waiting.length === 1 && this.#again === undefined) setImmediate(() => void this.#commit())
    })
  }

  /** From now on buckets have these sizes, and are refilled so fast. */
  use(rules: Readonly<Record<BucketKind, BucketRules>>): void {
    this.#refill.use(rules)
  }

  /** Advances the time of the tables, which refills the buckets. */
  tick(): void {
    this.#refill.tick()
  }

  /** Writes what changed since it was last called: buckets with paid tokens, and those that lack a hundredth or more. */
  save(): void {
    const savedMs = this.clock.now()
    const rows: { key: Buffer; value: Buffer }[] = []
    const written: { table: KeptTable; slot: Slot }[] = []
    for (const kind of ['ip', 'resource'] as const) {
      const table = this.tables[kind]
      const least = (table.rules.capacity * grainsPerToken) / 100
      for (const slot of table.changed()) {
        const { key, lacking, paid } = slot
        if (paid === undefined && lacking < least) continue
        rows.push({ key: bucketRowKey(kind, key), value: bucketRow({ lacking, paid: paid ?? 0, savedMs }) })
        written.push({ table, slot })
      }
    }
    if (rows.length === 0) return
    const isSaved = this.#write(() => {
      for (const { key, value } of rows) this.#rows.put(key, value)
    })
    for (const { table, slot } of written) {
      if (!isSaved) table.keepChanged(slot)
      else if (slot.paid === 0) table.unpin(slot)
    }
  }

  /** Commits what waits, saves, and closes the environment. */
  async close(): Promise<void> {
    this.#refill.close()
    for (const timer of this.#timers) timer.cancel()
    this.#again?.cancel()
    // What the disk does not take now is credited at the next start: the payment's own record shows that it was not yet.
    await this.#commit()
    this.#again?.cancel()
    this.save()
    await this.#environment.close()
  }

  /**
   * Commits all waiting credits in one transaction. Tokens are added in memory after the commit, and callers are
   * answered after the flush.
   */
  async #commit(): Promise<void> {
    const batch = this.#waiting
    this.#again = undefined
    if (batch.length === 0) return
    let fresh: readonly boolean[] = []
    const isWritten = this.#write(() => {
      fresh = batch.map(({ credit }) => this.#add(credit))
    })
    if (!isWritten) {
      this.#again = this.clock.after(againMs, () => void this.#commit())
      return
    }
    this.#waiting = []
    // Memory is changed in the same turn as the commit: a save in between would overwrite the row with the old value
    // in memory.
    for (const [at, { credit }] of batch.entries()) if (fresh[at] === true) this.#count(credit)
    await this.#environment.flushed()
    for (const [at, { resolve }] of batch.entries())
      resolve({ kind: fresh[at] === true ? 'credited' : 'known' })
  }

  /** One transaction; false where the disk does not take it. */
  #write(act: () => void): boolean {
    return whileDiskTakes(this.#disk, () => this.#environment.write(act))
  }

  /** The row may be behind for spent tokens, but never for paid ones, so an addition to it loses nothing. */
  #add({ bucket, key, payment, tokens }: KeeperRequest): boolean {
    const now = this.clock.now()
    if (!this.#payments.add(paymentKey(payment), paymentRow(tokens, now))) return false
    const rowKey = bucketRowKey(bucket, key)
    const row = this.#rows.get(rowKey)
    const before = row === undefined ? { lacking: 0, paid: 0, savedMs: now } : readBucketRow(row)
    const paid = Math.min(before.paid + tokens, paidMax)
    this.#rows.put(rowKey, bucketRow({ ...before, paid }))
    return true
  }

  #count({ bucket, key, tokens }: KeeperRequest): void {
    if (this.tables[bucket].restore(this.#keyOf(bucket, key), 0, tokens)) return
    this.log.error({ bucket, tokens }, 'no place for a paid bucket: it counts after the next start')
  }

  #load(): void {
    const now = this.clock.now()
    for (const { key, value } of this.#rows.span({})) {
      const row = readBucketRow(value)
      const found = readBucketRowKey(key)
      const { [found.kind]: table } = this.tables
      const lacking = this.#lackingNow(found.kind, row, now)
      if (lacking === 0 && row.paid === 0) continue
      table.restore(this.#keyOf(found.kind, found.key), lacking, row.paid === 0 ? undefined : row.paid)
    }
  }

  /** What a saved bucket lacks after the time that went by, also where the clock was set back meanwhile. */
  #lackingNow(
    kind: BucketKind,
    { lacking, savedMs }: { lacking: number; savedMs: number },
    now: number,
  ): number {
    const perMs = (this.tables[kind].rules.refillPerSecond * grainsPerToken) / 1000
    return Math.max(Math.floor(lacking - Math.abs(now - savedMs) * perMs), 0)
  }

  #keyOf(kind: BucketKind, words: ArrayLike<number>): Key {
    const [one = 0, two = 0, three = 0, four = 0] = Array.from(words)
    if (kind === 'resource') return new Key(one, two, three, four, two)
    return Key.ofWords(Int32Array.of(one, two, three, four), this.secret)
  }

  /** Removes rows of buckets that are full by now, and payments that nobody can repeat any more; a part of them at a time. */
  #prune(): void {
    const now = this.clock.now()
    const { table: name, key: start } = this.#cursor
    const table = name === 'rows' ? this.#rows : this.#payments
    const entries = table.from(start, pruneRows)
    const outdated = entries.filter(({ key, value }) => {
      if (name === 'payments') return now - readPaymentMs(value) > paymentKeptMs
      const row = readBucketRow(value)
      return row.paid === 0 && this.#lackingNow(readBucketRowKey(key).kind, row, now) === 0
    })
    const isWritten = this.#write(() => {
      for (const { key } of outdated) table.remove(key)
    })
    if (!isWritten) return
    const last = entries.length < pruneRows ? undefined : entries.at(-1)
    this.#cursor =
      last === undefined ? { table: name === 'rows' ? 'payments' : 'rows' } : { table: name, key: last.key }
  }

  /** The key of the hash of resources: the same after a restart, because rows are named by it, and secret. */
  #readSecret(): Secret {
    const table = this.#environment.table('secret')
    const name = Buffer.from('hash')
    const known = table.get(name)
    const bytes = Buffer.from(known ?? randomBytes(8))
    if (known === undefined) this.#environment.write(() => table.add(name, bytes))
    return readSecret(bytes)
  }
}
