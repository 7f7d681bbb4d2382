import { systemClock, type Timer } from '../../src/actor/clock.js'
import type { BulkLimits } from '../../src/catalog/bulk-batch.js'
import { CatalogKeeper } from '../../src/catalog/catalog-keeper.js'
import { Dictionary } from '../../src/catalog/dictionary.js'
import { Effort } from '../../src/catalog/effort.js'
import { Generations } from '../../src/catalog/generations.js'
import { findRow } from '../../src/catalog/ids.js'
import type {
  BlockInput,
  IndexRequest,
  ItemInput,
  TransactionInput,
} from '../../src/catalog/index-protocol.js'
import { ChainIndex } from '../../src/catalog/index-reader.js'
import { type IndexTables, openIndexTables } from '../../src/catalog/index-tables.js'
import { packItems, packTransactions } from '../../src/catalog/pack.js'
import { blockRows, prefixOf } from '../../src/catalog/postings.js'
import { decodeRow } from '../../src/catalog/row.js'
import { heightOf, isItemKey } from '../../src/catalog/row-key.js'
import { rowOf } from '../../src/catalog/segment-rows.js'
import type { FlushLimits } from '../../src/catalog/segment-upkeep.js'
import type { Selection } from '../../src/catalog/selection.js'
import type { SpillLimits } from '../../src/catalog/spill.js'
import { isInSpan, type LiveTables } from '../../src/catalog/table-sets.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { type Id, idBytes } from '../../src/format/id.js'
import type { Environment } from '../../src/store/lmdb.js'
import { scratch } from '../scratch.js'

/** One row as the model keeps it: the plain truth in a plain list. */
export interface ModelRow {
  readonly id: Id
  readonly height: number | undefined
  readonly index: number
  readonly input: TransactionInput | ItemInput
}

const isItem = (input: TransactionInput | ItemInput): input is ItemInput => 'parentId' in input
const last = 2 ** 40

/** Chain order, oldest first. */
export function inChainOrder(one: ModelRow, other: ModelRow): number {
  return (
    (one.height ?? last) - (other.height ?? last) ||
    one.index - other.index ||
    Number(isItem(one.input)) - Number(isItem(other.input)) ||
    Buffer.compare(idBytes(one.id), idBytes(other.id))
  )
}

/** The index as a list that is searched from one end to the other. */
export class Model {
  rows = new Map<Id, ModelRow>()
  blocks = new Map<number, BlockInput>()

  #arrivals = 0

  /** `index` of what is in no block counts what arrived. */
  put(added: ModelRow): void {
    const known = this.rows.get(added.id)
    this.#arrivals += 1
    const arrival = known !== undefined && known.height === undefined ? known.index : this.#arrivals
    const row = added.height === undefined ? { ...added, index: arrival } : added
    const order = known === undefined ? -1 : inChainOrder(row, known)
    const lower =
      known !== undefined &&
      isItem(row.input) &&
      isItem(known.input) &&
      row.input.rootItemOffset < known.input.rootItemOffset
    if (order < 0 || (order === 0 && lower)) this.rows.set(row.id, row)
  }

  unwind(from: number): void {
    for (const height of [...this.blocks.keys()]) if (height >= from) this.blocks.delete(height)
    for (const [id, { height }] of [...this.rows]) if ((height ?? -1) >= from) this.rows.delete(id)
  }

  /** Drops what is pending: transactions, and `items` where they are old enough, too. */
  expire(items: boolean): void {
    for (const [id, { height, input }] of [...this.rows])
      if (height === undefined && (items || !isItem(input))) this.rows.delete(id)
  }

  /** Oldest first. */
  select(wanted: Selection): ModelRow[] {
    return [...this.rows.values()].filter((row) => matches(row, wanted)).sort(inChainOrder)
  }
}

const among = (list: readonly Uint8Array[], bytes: Uint8Array): boolean =>
  list.some((entry) => Buffer.compare(entry, bytes) === 0)

function matches({ id, height, input }: ModelRow, wanted: Selection): boolean {
  const bounded = wanted.minHeight !== undefined || wanted.maxHeight !== undefined
  if (bounded && height === undefined) return false
  if (height !== undefined && (height < (wanted.minHeight ?? 0) || height > (wanted.maxHeight ?? last)))
    return false
  if (wanted.ids !== undefined && !among(wanted.ids, idBytes(id))) return false
  if (wanted.owners !== undefined && !among(wanted.owners, input.ownerAddress)) return false
  if (wanted.recipients !== undefined && !among(wanted.recipients, input.target)) return false
  if (wanted.bundledIn === null && isItem(input)) return false
  if (wanted.bundledIn && !(isItem(input) && among(wanted.bundledIn, idBytes(input.parentId)))) return false
  return (wanted.tags ?? []).every(({ name, values, match }) => {
    const own = input.tags.filter((tag) => Buffer.compare(tag.name, name) === 0).map(({ value }) => value)
    if (match === 'is') return own.some((value) => among(values, value))
    if (match === 'isNot') return !own.some((value) => among(values, value))
    return own.some((value) =>
      values.some((start) => Buffer.compare(value.subarray(0, start.length), start) === 0),
    )
  })
}

/** Everything becomes a file at once, and files are merged all the time. */
export const filesOnly: SpillLimits = {
  directEntries: 3,
  tableEntries: 4,
  drainEntries: 2,
  filesAlike: 2,
  smallRecords: 4,
}

/** Rows leave the tables after a few blocks, and segments are merged all the time. */
export const earlyFlush: FlushLimits = {
  rows: 5,
  forkDepth: 2,
  rowsEach: 4,
  merges: { segmentsAlike: 3, levelMax: 2 },
}

function soon(act: () => void): Timer {
  const timer = setImmediate(act)
  return { cancel: () => clearImmediate(timer) }
}

/** A keeper and a reader of an empty catalog. */
/** `read`: gives the environment that readers use. */
export function openHouse(
  spill?: SpillLimits,
  read = (environment: Environment): Environment => environment,
  flush?: FlushLimits,
  bulk?: BulkLimits,
  now = (): number => 5_000_000,
) {
  const path = scratch('index')
  const generations = new Generations()
  const keeper = new CatalogKeeper(
    {
      path,
      touchEveryMs: 0,
      ...(spill === undefined ? {} : { spill }),
      ...(flush === undefined ? {} : { flush }),
      ...(bulk === undefined ? {} : { bulk }),
    },
    generations,
    {
      ...systemClock,
      now,
      // What is done about segments follows at once. Files are removed as late as they are.
      after: (ms, act) => (ms < 100 ? soon(act) : systemClock.after(ms, act)),
    },
  )
  const environment = read(openCatalogTables(path).environment)
  const tables = openIndexTables(environment)
  const index = new ChainIndex(environment, generations)
  const apply = async (requests: readonly IndexRequest[]): Promise<void> => {
    await Promise.all(requests.map((request) => keeper.handle(request)))
    index.refresh()
  }
  const close = async (): Promise<void> => {
    await environment.close()
    await keeper.close()
  }
  return { path, keeper, tables, index, apply, close }
}

/** Effort without end. */
export const tireless = (): Effort => new Effort(Number.MAX_SAFE_INTEGER, 600_000, systemClock)

/** All pages of a selection, put together. */
export function readAll(index: ChainIndex, wanted: Selection, backwards: boolean, limit: number): string[] {
  const ids: string[] = []
  for (let after: Uint8Array | undefined; ; ) {
    const page = index.rows(
      wanted,
      { backwards, limit, ...(after === undefined ? {} : { after }) },
      tireless(),
    )
    ids.push(...page.entries.map(({ id }) => Buffer.from(id).toString('base64url')))
    if (!page.more) return ids
    after = page.entries.at(-1)?.key
  }
}

export const blockMessage = (block: BlockInput, transactions: readonly TransactionInput[]): IndexRequest => ({
  kind: 'index-block',
  block,
  transactions: packTransactions(transactions),
})

export const itemsMessage = (rootId: Id, items: readonly ItemInput[], optimistic = false): IndexRequest => ({
  kind: 'index-items',
  rootId,
  items: packItems(items),
  optimistic,
})

/** A row as text: fields by their names, bytes in hex. */
function textOf(row: object): string {
  const plain = (value: unknown): unknown => {
    if (typeof value === 'bigint') return String(value)
    if (value instanceof Uint8Array) return Buffer.from(value).toString('hex')
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    const fields = Object.entries(value).filter(([, field]) => field !== undefined)
    return Object.fromEntries(
      fields.sort(([one], [other]) => (one < other ? -1 : 1)).map(([name, field]) => [name, plain(field)]),
    )
  }
  return JSON.stringify(plain(row))
}

/** The rows of segments, as if they were in the tables. */
function segmentLines(tables: IndexTables): string[] {
  const lines: string[] = []
  for (const live of tables.segments.all()) {
    for (let number = 0; number < live.segment.count; number += 1) {
      if (live.isRemoved?.(number) === true) continue
      const row = rowOf(live, number)
      const key = keyText(row.key)
      const tags = row.tags.map(({ name, value }) => `${hex(name)}=${hex(value)}`)
      const led = live.segment.find(row.id) === number ? key : 'leads nowhere'
      const place = row.place && { ...row.place, parent: hex(row.place.parent) }
      lines.push(`id ${hex(row.id)} ${led}`, `row ${textOf({ ...row, key, tags, place })}`)
      const posted = tags.map((tag) => `1 ${tag}`)
      posted.push(`2 ${hex(row.owner)}`)
      if (row.recipient.length > 0) posted.push(`3 ${hex(row.recipient)}`)
      if (place !== undefined) posted.push(`4 ${place.parent}`)
      if (!row.isItem) posted.push('5 ')
      for (const words of new Set(posted)) lines.push(`posting ${words} ${key}`)
    }
  }
  return lines
}

/**
 * Everything the index says, without the numbers of words, without how postings are cut into blocks, and without the
 * order of arrival of what is in no block.
 */
export function dump(tables: IndexTables): string[] {
  const lines = [...tables.sets.live().flatMap(dumpSet), ...segmentLines(tables)]
  for (const name of ['blocks', 'blockIds', 'weave'] as const) {
    for (const { key, value } of tables[name].span({}))
      lines.push(`${name} ${Buffer.from(key).toString('hex')} ${Buffer.from(value).toString('hex')}`)
  }
  return lines.sort()
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
const keyText = (bytes: Uint8Array): string =>
  heightOf(bytes) === undefined ? `pending ${isItemKey(bytes)} ${hex(bytes.subarray(7))}` : hex(bytes)

/** What counts of one set of tables. */
function dumpSet({ tables, span }: LiveTables): string[] {
  const dictionary = new Dictionary(tables)
  const text = (number: number): string => (number === 0 ? '' : dictionary.bytes(number).toString('hex'))
  const tag = (number: number): string =>
    `${dictionary.name(number).toString('hex')}=${dictionary.value(number).toString('hex')}`
  const lines: string[] = []
  for (const { key: at, value } of tables.rows.span({})) {
    if (!isInSpan(span, at)) continue
    const row = decodeRow(at, value)
    const fields = {
      ...row,
      key: keyText(at),
      index: row.height === undefined ? 0 : row.index,
      owner: text(row.owner),
      recipient: text(row.recipient),
      tags: row.tags.map(tag),
    }
    const place = row.place && { ...row.place, parent: text(row.place.parent) }
    const led = findRow(tables, tables.runs.ids, row.id)
    lines.push(`id ${hex(row.id)} ${led === undefined ? 'leads nowhere' : keyText(led.key)}`)
    lines.push(`row ${textOf({ ...fields, place })}`)
  }
  for (const { key: block, value } of tables.postings.span({})) {
    const prefix = prefixOf(block)
    const kind = Math.floor(prefix / 2 ** 40)
    const word = prefix % 2 ** 40
    const rows = blockRows(block, value)
    for (let at = 0; at < rows.length; at += 16) {
      const row = rows.subarray(at, at + 16)
      if (!isInSpan(span, row)) continue
      lines.push(`posting ${kind} ${kind === 1 ? tag(word) : text(word)} ${keyText(row)}`)
    }
  }
  for (const { key: at } of tables.pending.span({})) {
    if (isInSpan(span, at.subarray(4)))
      lines.push(`pending since ${hex(at.subarray(0, 4))} ${keyText(at.subarray(4))}`)
  }
  return lines
}
