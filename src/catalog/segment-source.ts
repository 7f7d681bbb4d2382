import { TransactionCursor } from '../index/row-cursor.js'
import type { RowList } from '../index/row-list.js'
import { type Field, fieldKey, tagKey, wordField } from '../index/word-key.js'
import type { Effort } from './effort.js'
import { localRow, rowFrom } from './local-key.js'
import type { Row } from './row.js'
import { rowKeyBytes } from './row-key.js'
import type { Looks, OpenList, RowRole, RowSource, WordRows } from './row-source.js'
import type { Blocks, Scan } from './scan.js'
import { SegmentListScan } from './segment-list-scan.js'
import { findIn, type LiveSegment } from './segment-rows.js'
import { withoutLonger } from './tag-starts.js'

/** Rows of the list of transactions that are looked for at once. */
const transactionsAhead = 64
/** Numbers of rows that are read in one step where they stand beside each other. */
const keysPerStep = 16
/** Tags of rows that are looked at in one step. */
const tagsPerStep = 4
/** An id lies in a bucket of some ten entries, so it takes a quarter of the time of a word. */
const idSteps = 1 / 4

const fields: Readonly<Record<RowRole, Field>> = {
  owner: wordField.owner,
  recipient: wordField.recipient,
  bundle: wordField.parent,
}
const wordOf: Readonly<Record<RowRole, (row: Row) => Uint8Array | undefined>> = {
  owner: (row) => row.owner,
  recipient: (row) => (row.recipient.length === 0 ? undefined : row.recipient),
  bundle: (row) => row.place?.parent,
}

/** Keys of rows, ascending. */
function keysOf(rows: ArrayLike<number>, count: number): Buffer {
  const keys = Buffer.alloc(count * rowKeyBytes)
  for (let at = 0; at < count; at += 1) keys.writeUInt32BE(rows[at] as number, at * rowKeyBytes)
  return keys
}

/** The rows of one segment. */
export class SegmentSource implements RowSource<Row> {
  readonly areListsNear = true
  readonly isGone?: (key: Buffer) => boolean

  constructor(private readonly live: LiveSegment) {
    const { isRemoved } = live
    if (isRemoved !== undefined) this.isGone = (key) => isRemoved(localRow(key))
  }

  listed(role: RowRole, words: readonly Uint8Array[], effort: Effort): WordRows<Row> {
    const lists = words.map((word) => {
      effort.lookUp()
      return this.live.segment.list(fieldKey(fields[role], word))
    })
    const wanted = new Set(words.map(textOf))
    const holds = (row: Row): boolean => {
      const own = wordOf[role](row)
      return own !== undefined && wanted.has(textOf(own))
    }
    return { ...this.#opened(lists, effort), holds }
  }

  tagged(name: Uint8Array, values: readonly Uint8Array[], effort: Effort): WordRows<Row> {
    const lists = values.map((value) => {
      effort.lookUp()
      return this.live.segment.list(tagKey(name, value))
    })
    const wanted = new Set(values.map(textOf))
    const holds = ({ tags }: Row): boolean =>
      tags.some((tag) => tag.name.equals(name) && wanted.has(textOf(tag.value)))
    return { ...this.#opened(lists, effort), holds }
  }

  starting(
    name: Uint8Array,
    values: readonly Uint8Array[],
    looks: Looks,
    effort: Effort,
  ): WordRows<Row> | ((row: Row) => boolean) {
    const starts = withoutLonger(values)
    const isIn = (value: Buffer): boolean =>
      starts.some((start) => value.length >= start.length && value.subarray(0, start.length).equals(start))
    const holds = ({ tags }: Row): boolean => tags.some((tag) => tag.name.equals(name) && isIn(tag.value))
    const lists: RowList[] = []
    const before = looks.left
    for (const start of effort.spent ? [] : starts) {
      looks.left -= 1
      if (looks.left < 0) break
      this.live.segment.tags(name, start, (_, list) => {
        looks.left -= 1
        lists.push(list)
        return looks.left >= 0
      })
    }
    const isWhole = looks.left >= 0 && !effort.spent
    effort.charge(1 + (before - looks.left) / keysPerStep)
    if (isWhole) return { ...this.#opened(lists, effort), holds }
    return (row) => {
      effort.charge(row.tags.length / tagsPerStep)
      return holds(row)
    }
  }

  transactions(effort: Effort): Blocks {
    const { segment } = this.live
    return {
      from(key, backwards) {
        effort.charge()
        const rows: number[] = []
        const first = rowFrom(key, backwards)
        if (segment.count === 0 || (!backwards && first >= segment.count)) return undefined
        const cursor = new TransactionCursor(segment.groups, segment.count, backwards)
        cursor.seek(first)
        for (; cursor.row >= 0 && rows.length < transactionsAhead; cursor.next()) rows.push(cursor.row)
        effort.charge(rows.length / keysPerStep)
        if (backwards) rows.reverse()
        return rows.length === 0 ? undefined : keysOf(rows, rows.length)
      },
    }
  }

  all(effort: Effort, limit: number): Blocks {
    const { count } = this.live.segment
    return {
      from(key, backwards) {
        const at = rowFrom(key, backwards)
        const first = backwards ? Math.max(0, Math.min(at, count - 1) - limit + 1) : at
        const end = backwards ? Math.min(at + 1, count) : Math.min(at + limit, count)
        if (first >= end) return undefined
        effort.charge(1 + (end - first) / keysPerStep)
        const rows = Uint32Array.from({ length: end - first }, (_, row) => first + row)
        return keysOf(rows, rows.length)
      },
    }
  }

  keysOf(ids: readonly Uint8Array[], effort: Effort): Buffer {
    const found = ids.flatMap((id) => {
      effort.lookUp(idSteps)
      const row = findIn(this.live, id)
      return row >= 0 ? [row] : []
    })
    const rows = Uint32Array.from(new Set(found)).sort()
    return keysOf(rows, rows.length)
  }

  #opened(lists: readonly (RowList | undefined)[], effort: Effort): Pick<WordRows<Row>, 'lists' | 'count'> {
    const there = lists.flatMap((list) => (list === undefined ? [] : [list]))
    const count = there.reduce((sum, list) => sum + list.count, 0)
    return { lists: there.map((list) => this.#list(list, effort)), count }
  }

  #list(list: RowList, effort: Effort): OpenList {
    return (backwards: boolean): Scan =>
      new SegmentListScan(this.live.segment.reader(list), backwards, effort)
  }
}

/** One character per byte: a key of a set. */
function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
}
