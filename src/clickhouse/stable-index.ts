import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Page } from '../catalog/index-reader.js'
import { compareRowKeys } from '../catalog/row-key.js'
import type { Selection } from '../catalog/selection.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { Recent } from '../store/recent.js'
import { type Asker, answerTooLarge, type ClickhouseClient } from './clickhouse-client.js'
import { readColumns } from './clickhouse-schema.js'
import { type RecordedHeights, recordedHeights, type StableHeights, type WholeHeights } from './heights.js'
import { RowBinaryFault, RowBinaryReader } from './row-binary.js'
import { type FollowedChain, sameChain } from './same-chain.js'
import {
  countSql,
  isMeant,
  isOfHeights,
  lookUpWords,
  onlyWords,
  rowsSql,
  type Stretch,
  type Word,
  wholeRowsSql,
  wordCountsSql,
} from './selection-sql.js'
import type { Sql } from './sql.js'
import { readRow, type StableRow } from './stable-row.js'

/** A page of rows that ClickHouse has. */
export interface StableRequest {
  readonly backwards: boolean
  /** Key behind which it begins. */
  readonly after?: Uint8Array | undefined
  readonly limit: number
}

const pageMaxBytes = 16 * 2 ** 20
const smallMaxBytes = 2 ** 20
/** Statements for one page: more than one only where rows are there several times. */
const roundsMax = 4
/** Where a page is too large, because rows have many tags, so many times fewer rows are read. */
const rowsPart = 16
/** Tags and bundles that at most so many rows have are looked up before anything else. */
const rareMax = 50_000
/** How long it counts how many have one, and of how many that is kept (twice as many at most). */
const [rareForMs, rareKept] = [60_000, 1000] as const
/** Heights are read again after so long, by the way; what was read before counts meanwhile. */
const heightsForMs = 5000
/** What is wrong is in the log, but not once for each query. */
const warnEachMs = 10_000
const nothing: Page<StableRow> = { entries: [], more: false }
const nothingRecorded: RecordedHeights = { heights: undefined, hasWholeRows: false }

/** The rows of stable heights that ClickHouse has, as queries read them. Never rejects for what ClickHouse does. */
export class StableIndex {
  #known: (RecordedHeights & { readonly sinceMs: number }) | undefined
  #warnedMs = Number.NEGATIVE_INFINITY
  #reading: Promise<WholeHeights | undefined | Refusal> | undefined
  readonly #rare = new Recent<string, { readonly count: number; readonly sinceMs: number }>(rareKept)

  constructor(
    private readonly client: ClickhouseClient,
    private readonly clock: Clock,
    private readonly log: Pick<Log, 'info' | 'warn'>,
    /** Absent: it is not compared with what ClickHouse has. */
    private readonly chain?: FollowedChain,
  ) {}

  /**
   * The heights that belong to ClickHouse, all of them with all their rows; undefined: none. At once where they were read before.
   * A refusal where nothing is known of them yet.
   */
  heights(): WholeHeights | undefined | Promise<WholeHeights | undefined | Refusal> {
    const isFresh = this.#known !== undefined && this.clock.monotonic() - this.#known.sinceMs < heightsForMs
    if (isFresh) return this.#known?.heights
    this.#reading ??= this.#read()
    return this.#known === undefined ? this.#reading : this.#known.heights
  }

  async #read(): Promise<WholeHeights | undefined | Refusal> {
    const read = await this.#recorded()
    this.#reading = undefined
    const recorded = isRefusal(read) && read.refused === 'unknown' ? nothingRecorded : read
    if (isRefusal(recorded)) return recorded
    const found = recorded.heights
    const before = this.#known?.heights
    if (this.#known === undefined || before?.to !== found?.to || before?.from !== found?.from) {
      this.log.info({ from: found?.from, to: found?.to }, 'heights of the index that ClickHouse has')
    }
    this.#known = { ...recorded, sinceMs: this.clock.monotonic() }
    return found
  }

  /** What is recorded, where it is of the chain that is followed here. */
  async #recorded(): Promise<RecordedHeights | Refusal> {
    const recorded = await recordedHeights(this.client)
    if (isRefusal(recorded) || recorded.heights === undefined || this.chain === undefined) return recorded
    const { version } = recorded.heights
    // It is compared with each new record, and not with each look.
    if (version === this.#known?.heights?.version) return recorded
    const compared = await sameChain(this.client, this.chain, recorded.heights)
    if (!isRefusal(compared)) return recorded
    if (compared.refused === 'upstream') this.#known = undefined
    this.#warn(compared.message)
    return compared
  }

  /** The row with this id (32 bytes). */
  async row(id: Uint8Array, heights: StableHeights, asker?: Asker): Promise<StableRow | undefined | Refusal> {
    const page = await this.rows({ ids: [id] }, { backwards: true, limit: 1 }, heights, asker)
    return isRefusal(page) ? page : page.entries[0]
  }

  /**
   * The rows of a selection within the heights, in chain order. A page that ended early has a `place`. Refusals: those of
   * `ClickhouseClient.ask`.
   */
  async rows(
    wanted: Selection,
    { backwards, after, limit }: StableRequest,
    heights: StableHeights,
    asker?: Asker,
  ): Promise<Page<StableRow> | Refusal> {
    const stretch = stretchOf(wanted, heights, backwards, after)
    if (stretch === undefined) return nothing
    const rare = await this.#rarest(wanted, heights, asker)
    if (isRefusal(rare)) return rare
    const words = onlyWords(wanted, rare) ?? []
    const entries: StableRow[] = []
    let from = stretch
    let parts = 1
    for (let round = 0; round < roundsMax; round += 1) {
      const most = Math.ceil(((limit + 1 - entries.length) * 2 ** round) / parts)
      const read = await this.#rowsOf(wanted, rare, from, most, asker)
      if (read === answerTooLarge && most > 1 && round + 1 < roundsMax) {
        parts *= rowsPart
        continue
      }
      if (isRefusal(read)) return read
      const { rows, isEnd } = read
      // By the hash of a tag rows of another one may be found.
      entries.push(...rows.filter(({ row }) => words.every((word) => isMeant(row, word))))
      if (entries.length > limit) return { entries: entries.slice(0, limit), more: true }
      const last = rows.at(-1)
      if (isEnd || last === undefined) return { entries, more: false }
      from = { ...from, after: last.row.key }
      if (parts > 1) break
    }
    return { entries, more: true, place: from.after as Uint8Array }
  }

  /** How many rows a selection has within the heights; undefined: counting takes too long. */
  async count(
    wanted: Selection,
    heights: WholeHeights,
    asker?: Asker,
  ): Promise<number | undefined | Refusal> {
    const stretch = stretchOf(wanted, heights, false, undefined)
    if (stretch === undefined) return 0
    const { minHeight: _, maxHeight: __, ...others } = wanted
    const isAll =
      Object.keys(others).length === 0 && stretch.from === heights.from && stretch.to === heights.to
    if (isAll && heights.rows !== undefined) return heights.rows
    const rare = await this.#rarest(wanted, heights, asker)
    const counted = isRefusal(rare)
      ? rare
      : await this.#answered(countSql(wanted, rare, stretch), (from) => from.u64(), asker)
    if (!isRefusal(counted)) return counted[0]
    return counted.refused === 'too-large' ? undefined : counted
  }

  /** The word that fewest rows have, where these are few: it is looked up before anything else. */
  async #rarest(
    wanted: Selection,
    heights: StableHeights,
    asker: Asker | undefined,
  ): Promise<Word | undefined | Refusal> {
    if (wanted.ids !== undefined || onlyWords(wanted) !== undefined) return undefined
    const nowMs = this.clock.monotonic()
    const words = lookUpWords(wanted).map((word) => ({ word, name: nameOf(word) }))
    const missing = words.filter(({ name }) => {
      const known = this.#rare.get(name)
      return known === undefined || nowMs - known.sinceMs > rareForMs
    })
    if (missing.length > 0) {
      const list = missing.map(({ word }) => word)
      const read = (from: RowBinaryReader) => ({ at: from.u32(), count: from.u64() })
      const counts = await this.#answered(wordCountsSql(list, heights, rareMax + 1), read, asker)
      if (isRefusal(counts)) return counts
      for (const { at, count } of counts) {
        const about = missing[at]
        if (about !== undefined) this.#rare.set(about.name, { count, sinceMs: nowMs })
      }
    }
    let best: { readonly word: Word; readonly count: number } | undefined
    for (const { word, name } of words) {
      const count = this.#rare.get(name)?.count ?? Number.POSITIVE_INFINITY
      if (count <= rareMax && count < (best?.count ?? Number.POSITIVE_INFINITY)) best = { word, count }
    }
    return best?.word
  }

  /** Rows of a part of the selection: of `most` keys at most, or as many with their copies. `isEnd`: there are no more. */
  async #rowsOf(
    wanted: Selection,
    rare: Word | undefined,
    stretch: Stretch,
    most: number,
    asker: Asker | undefined,
  ): Promise<{ readonly rows: readonly StableRow[]; readonly isEnd: boolean } | Refusal> {
    const known = this.#known
    const isWhole = known?.hasWholeRows === true
    const statement = isWhole
      ? wholeRowsSql(wanted, rare, stretch, most)
      : rowsSql(readColumns, wanted, rare, stretch, most)
    // Whole rows are RowBinary in themselves, and stand one behind the other.
    const format = isWhole ? 'RawBLOB' : 'RowBinary'
    const given = await this.#answered(statement, readRow, asker, pageMaxBytes, format)
    if (isRefusal(given)) {
      if (!isWhole || given.refused !== 'unknown') return given
      // The table was removed: the others have all rows.
      this.#known = { ...known, hasWholeRows: false }
      return this.#rowsOf(wanted, rare, stretch, most, asker)
    }
    const rows = withoutCopies(given)
    if (!isInOrder(rows, stretch)) return this.#wrong('rows are not in order')
    const isByKeys = isWhole ? !isOfHeights(wanted) : onlyWords(wanted, rare) !== undefined
    return { rows, isEnd: (isByKeys ? rows.length : given.length) < most }
  }

  /** What a statement gives, each row by `read`. */
  async #answered<Row>(
    statement: Sql,
    read: (from: RowBinaryReader) => Row,
    asker: Asker | undefined,
    maxBytes = smallMaxBytes,
    format = 'RowBinary',
  ): Promise<Row[] | Refusal> {
    const bytes = await this.client.ask(`${statement.text} FORMAT ${format}`, maxBytes, readSettings, asker)
    if (isRefusal(bytes)) {
      if (bytes.refused !== 'too-large' && bytes.refused !== 'busy') this.#warn(bytes.message)
      return bytes
    }
    try {
      const rows: Row[] = []
      for (const from = new RowBinaryReader(bytes); from.more; ) rows.push(read(from))
      return rows
    } catch (error) {
      if (!(error instanceof RowBinaryFault) && !(error instanceof RangeError)) throw error
      return this.#wrong(error.message)
    }
  }

  #wrong(why: string): Refusal {
    this.#warn(why)
    return refuse('upstream', 'upstream', `an answer of ClickHouse is wrong: ${why}`)
  }

  #warn(why: string): void {
    const nowMs = this.clock.monotonic()
    if (nowMs - this.#warnedMs < warnEachMs) return
    this.#warnedMs = nowMs
    this.log.warn({ why, fault: this.client.fault }, 'ClickHouse answers no query, or not rightly')
  }

  close(): Promise<void> {
    return this.client.close()
  }
}

/** Whoever leaves ends the query in ClickHouse, too. */
const readSettings = { cancel_http_readonly_queries_on_client_close: 1 }

/** What of a selection may lie within the heights, behind the key; undefined: nothing. */
function stretchOf(
  wanted: Selection,
  heights: StableHeights,
  backwards: boolean,
  after: Uint8Array | undefined,
): Stretch | undefined {
  const from = Math.max(heights.from, wanted.minHeight ?? 0)
  const to = Math.min(heights.to, wanted.maxHeight ?? heights.to)
  const { ids, owners, recipients, bundledIn, tags = [] } = wanted
  const lists = [ids, owners, recipients, bundledIn ?? undefined]
  const isEmpty = lists.some((list) => list !== undefined && list.length === 0)
  if (from > to || isEmpty || tags.some(({ match, values }) => match !== 'isNot' && values.length === 0))
    return undefined
  if (after !== undefined) {
    // Keys of what is in no block are behind all heights.
    const height = Buffer.from(after.buffer, after.byteOffset, after.byteLength).readUInt32BE(0)
    if (backwards ? height < from : height > to) return undefined
  }
  return { backwards, from, to, after }
}

/** Rows in order, of each key the one that was written last. */
function withoutCopies(given: readonly StableRow[]): StableRow[] {
  const rows: StableRow[] = []
  for (const one of given) {
    const last = rows.at(-1)
    if (last === undefined || compareRowKeys(last.row.key, 0, one.row.key, 0) !== 0) rows.push(one)
    else if (one.insertedSeconds > last.insertedSeconds) rows[rows.length - 1] = one
  }
  return rows
}

/** No answer leads in circles, or out of the heights of the stretch. */
function isInOrder(rows: readonly StableRow[], { backwards, from, to, after }: Stretch): boolean {
  let last = after
  for (const { row } of rows) {
    const { key, height = -1 } = row
    const order = last === undefined ? 1 : compareRowKeys(key, 0, last, 0)
    if (height < from || height > to || order === 0 || (last !== undefined && order < 0 !== backwards))
      return false
    last = key
  }
  return true
}

function nameOf({ name, values }: Word): string {
  return [name, ...values].map((bytes) => Buffer.from(bytes).toString('latin1')).join('\u0000\u0001')
}
