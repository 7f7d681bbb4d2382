import { strict as assert } from 'node:assert'
import { join } from 'node:path'
import { writeBatch } from '../../src/index/batch-writer.js'
import type { OpenMapped } from '../../src/index/checked-file.js'
import type { MergeSource } from '../../src/index/merge-order.js'
import { RowBatch } from '../../src/index/row-batch.js'
import { Segment } from '../../src/index/segment.js'
import { mergeSegments } from '../../src/index/segment-merge.js'
import { pageOf, type RowsWanted } from '../../src/index/segment-pages.js'
import type { SegmentRow } from '../../src/index/segment-row.js'
import { chainOrder, hex, plain, unique } from './rows.js'

let made = 0

/** A new path in a folder. */
export function newPath(folder: string): string {
  made += 1
  return join(folder, String(made))
}

/** A segment of these rows. */
export function segmentOf(folder: string, rows: readonly SegmentRow[]): Segment {
  const batch = new RowBatch()
  for (const row of rows) batch.add(row)
  const path = newPath(folder)
  writeBatch(batch, path)
  return opened(path)
}

export function opened(path: string, openFile?: OpenMapped): Segment {
  const segment = Segment.open(path, openFile)
  assert.ok(segment)
  return segment
}

/** The segment that others become. */
export function merged(folder: string, sources: readonly MergeSource[]): Segment {
  const path = newPath(folder)
  for (const merging = mergeSegments(sources, path); merging.next().done !== true; );
  return opened(path)
}

/** Whether a row is wanted. */
export function isWanted(row: SegmentRow, wanted: RowsWanted): boolean {
  const { tags = [], owners, recipients, bundledIn, minHeight = 0, maxHeight = 0xffff_ffff } = wanted
  const has = (some: readonly Uint8Array[] | undefined, bytes: Uint8Array | undefined): boolean =>
    some === undefined || (bytes !== undefined && some.some((one) => hex(one) === hex(bytes)))
  return (
    row.height >= minHeight &&
    row.height <= maxHeight &&
    has(owners, row.owner) &&
    (recipients === undefined || (row.recipient.length > 0 && has(recipients, row.recipient))) &&
    (bundledIn === null ? !row.isItem : has(bundledIn, row.place?.parent)) &&
    tags.every(({ name, values }) =>
      row.tags.some((tag) => hex(tag.name) === hex(name) && has(values, tag.value)),
    )
  )
}

/** All pages of a selection, one behind the other. */
export function pages(
  segments: readonly Segment[],
  wanted: RowsWanted,
  backwards: boolean,
  limit: number,
): SegmentRow[] {
  const found: SegmentRow[] = []
  let after: Buffer | undefined
  for (;;) {
    const page = pageOf(segments, wanted, { backwards, limit, ...(after === undefined ? {} : { after }) })
    found.push(...page.rows)
    const last = page.rows.at(-1)
    if (last === undefined || !page.more) return found
    after = keyOf(last)
  }
}

/** The key of a row, as catalog/row-key.ts says. */
export function keyOf({ height, index, isItem, id }: SegmentRow): Buffer {
  const key = Buffer.alloc(16)
  key.writeUInt32BE(height, 0)
  key.writeUIntBE(index * 2 + (isItem ? 1 : 0), 4, 3)
  Buffer.from(id).copy(key, 7, 0, 9)
  return key
}

/** Compares all that a segment says with a plain list of its rows. */
export function compare(segment: Segment, all: readonly SegmentRow[]): void {
  const rows = unique(all)
  assert.equal(segment.count, rows.length)
  const byKey = new Map([...rows.entries()].reverse().map(([number, row]) => [hex(keyOf(row)), number]))
  const byId = new Map([...rows.entries()].map(([number, { id }]) => [hex(id), number]))
  const lists = new Map<string, Set<number>>()
  for (const [number, row] of rows.entries()) {
    assert.deepEqual(plain(segment.row(number)), plain(row))
    assert.equal(segment.find(row.id), number)
    assert.equal(hex(segment.keyOf(number)), hex(keyOf(row)))
    assert.equal(segment.lowerBound(keyOf(row)), byKey.get(hex(keyOf(row))))
    const near = Buffer.from(row.id)
    near[31] = (near[31] as number) ^ 1
    assert.equal(segment.find(near), byId.get(hex(near)) ?? -1)
    for (const { name, value } of row.tags) {
      const key = `${hex(name)}=${hex(value)}`
      lists.set(key, (lists.get(key) ?? new Set()).add(number))
    }
  }
  // All of some, some of many.
  const every = Math.max(1, Math.floor(lists.size / 100))
  const keys = [...lists.keys()].filter((_, at) => at % every === 0)
  for (const key of keys) {
    const [name = '', value = ''] = key.split('=')
    const found = rowsOf(segment, Buffer.from(name, 'hex'), Buffer.from(value, 'hex'))
    assert.deepEqual(found, [...(lists.get(key) as Set<number>)], key)
    for (const size of new Set([0, (value.length >> 2) * 2, value.length])) {
      compareStarts(segment, lists, name, value.slice(0, size))
    }
  }
}

/** Compares some of the rows of a segment of many, with the lists of their tags. */
export function compareSome(segment: Segment, all: readonly SegmentRow[]): void {
  const rows = unique(all)
  assert.equal(segment.count, rows.length)
  const every = Math.max(1, Math.floor(rows.length / 200))
  for (let number = 0; number < rows.length; number += every) {
    const row = rows[number] as SegmentRow
    assert.deepEqual(plain(segment.row(number)), plain(row))
    assert.equal(segment.find(row.id), number)
    for (const { name, value } of row.tags) {
      assert.ok(rowsOf(segment, name, value).includes(number))
    }
  }
}

function compareStarts(
  segment: Segment,
  lists: ReadonlyMap<string, ReadonlySet<number>>,
  name: string,
  start: string,
): void {
  const begin = `${name}=`
  const wanted = [...lists.keys()].flatMap((key) =>
    key.startsWith(begin + start) ? [key.slice(begin.length)] : [],
  )
  const found: string[] = []
  segment.tags(Buffer.from(name, 'hex'), Buffer.from(start, 'hex'), (one) => {
    found.push(hex(one))
    return true
  })
  assert.deepEqual(found, wanted.sort())
}

/** Rows of a tag, by its list. */
export function rowsOf(segment: Segment, name: Uint8Array, value: Uint8Array): number[] {
  const found: number[] = []
  segment.tags(name, value, (one, list) => {
    if (hex(one) !== hex(value)) return true
    const reader = segment.reader(list)
    for (let block = 0; block < reader.blockCount; block += 1) {
      reader.load(block)
      found.push(...reader.rows.subarray(0, reader.filled))
    }
    return false
  })
  return found
}

/** Compares pages of some segments with a plain list of their rows. */
export function comparePages(
  segments: readonly Segment[],
  all: readonly SegmentRow[],
  wanted: RowsWanted,
  limit: number,
): void {
  const rows = unique(all)
    .sort(chainOrder)
    .filter((row) => isWanted(row, wanted))
    .map((row) => hex(keyOf(row)))
  for (const backwards of [false, true]) {
    const found = pages(segments, wanted, backwards, limit).map((row) => hex(keyOf(row)))
    assert.deepEqual(found, backwards ? [...rows].reverse() : rows)
  }
}
