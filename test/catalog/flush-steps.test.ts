import { createHash } from 'node:crypto'
import { rmSync } from 'node:fs'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { Effort } from '../../src/catalog/effort.js'
import { Generations } from '../../src/catalog/generations.js'
import { checkIndex } from '../../src/catalog/index-check.js'
import type { IndexRequest, ItemInput, TransactionInput } from '../../src/catalog/index-protocol.js'
import { ChainIndex } from '../../src/catalog/index-reader.js'
import { openIndexTables } from '../../src/catalog/index-tables.js'
import { IndexWriter } from '../../src/catalog/index-writer.js'
import { packItems, packTransactions } from '../../src/catalog/pack.js'
import { rowKey } from '../../src/catalog/row-key.js'
import type { FlushLimits } from '../../src/catalog/segment-upkeep.js'
import type { SpillLimits } from '../../src/catalog/spill.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { type Id, idBytes, idOfBytes } from '../../src/format/id.js'
import { scratch } from '../scratch.js'
import { blockMessage, filesOnly, tireless } from './index-model.js'

const idOf = (name: string): Id => idOfBytes(Buffer.from(name.padEnd(32, '.')))
const owner = Buffer.alloc(32, 5)

function common(name: string) {
  return {
    id: idOf(name),
    size: 10,
    owner,
    ownerAddress: createHash('sha256').update(owner).digest(),
    target: Buffer.alloc(0),
    anchor: Buffer.alloc(0),
    tags: [{ name: Buffer.from('Type'), value: Buffer.from(name) }],
  }
}

function transaction(name: string): TransactionInput {
  const facts = { index: 0, format: 2, quantity: 0n, reward: 0n, dataRoot: Buffer.alloc(32), weaveEnd: 0 }
  return { ...common(name), ...facts }
}

function items(root: string, names: readonly string[], isUnjudged = false, rootItemOffset = 0): IndexRequest {
  const place = { parentId: idOf(root), rootItemOffset, parentItemOffset: 0, headerSize: 9 }
  const rows: ItemInput[] = names.map((name) => ({ ...common(name), ...place, signatureType: 2 }))
  return { kind: 'index-items', rootId: idOf(root), items: packItems(rows), isUnjudged }
}

function blockOf(height: number) {
  const id = Buffer.alloc(48, height).toString('base64url')
  const previous = Buffer.alloc(48, height - 1).toString('base64url')
  return { height, id, previous, timestamp: height, weaveSize: '0', transactionCount: 1 }
}

function block(height: number, root: string): IndexRequest {
  return blockMessage(blockOf(height), [transaction(root)])
}

/** A writer whose steps are taken one by one. */
function writerOf(name: string, flush: FlushLimits, spill?: SpillLimits) {
  const { environment } = openCatalogTables(scratch(name))
  const tables = openIndexTables(environment)
  const writer = new IndexWriter(tables, spill, flush)
  const reading = openCatalogTables(environment.path)
  const seen = openIndexTables(reading.environment)
  const index = new ChainIndex(reading.environment, new Generations())
  const apply = (...requests: IndexRequest[]): void => {
    environment.write(() => {
      for (const request of requests) writer.apply(request, 1000, () => undefined)
      writer.settle()
    })
    writer.tend()
  }
  const ids = (): string[] => {
    reading.environment.refresh()
    const names = index.stretch(0, 1000, undefined, 1000).map(({ id }) => Buffer.from(id).toString())
    return names.map((text) => text.replaceAll('.', ''))
  }
  /** All rows, in pages that end as soon as so many steps are taken. */
  const walk = (backwards: boolean, steps: number): string[] => {
    const found: string[] = []
    reading.environment.refresh()
    for (let after: Uint8Array | undefined; ; ) {
      const page = { backwards, limit: 1, ...(after === undefined ? {} : { after }) }
      const { entries, more, place } = index.rows({}, page, new Effort(steps, 600_000, systemClock))
      found.push(...entries.map(({ id }) => Buffer.from(id).toString().replaceAll('.', '')))
      if (!more) return found
      after = place ?? entries.at(-1)?.key
    }
  }
  /** Rows in the tables. */
  const left = (): number => {
    reading.environment.refresh()
    return seen.sets.counts().rows
  }
  /** To the end. */
  const tend = (): void => {
    while (writer.tendSegments() === 'more');
    for (const path of writer.takeRetired()) rmSync(path)
  }
  const close = async (): Promise<void> => {
    reading.environment.refresh()
    t.same(checkIndex(seen).problems, [])
    writer.close()
    await reading.environment.close()
    await environment.close()
  }
  return { writer, index, apply, ids, walk, left, tend, close, reading }
}

t.test('rows that stay move on, also where they have more words than the rows that leave', async (t) => {
  const house = writerOf('flush-left', { rows: 4, forkDepth: 1, rowsEach: 100, wordsEach: 30 })
  const many = Array.from({ length: 20 }, (_, at) => ({
    name: Buffer.from(`n${at}`),
    value: Buffer.from('v'),
  }))
  const pending = ['p', 'q', 'r'].map((name) => ({ ...transaction(name), tags: many }))
  house.apply({ kind: 'index-pending', transactions: packTransactions(pending) })
  for (let height = 100; height < 105; height += 1) house.apply(block(height, `t${height}`))
  house.tend()
  t.equal(house.left(), 8, 'for so few rows, others are not put a second time')
  for (let height = 105; height < 112; height += 1) house.apply(block(height, `t${height}`))
  house.tend()
  house.apply(block(112, 't112'))
  const moves: number[] = []
  for (let upkeep = 'more'; upkeep === 'more'; ) {
    upkeep = house.writer.tendSegments()
    moves.push(house.left())
  }
  t.equal(moves.at(-1), 4)
  t.same(house.index.counts(), { rows: 16, blocks: 13, pending: 3 })
  // They get a block, and blocks on top of it.
  house.apply(blockMessage(blockOf(113), pending))
  for (let height = 114; height < 119; height += 1) house.apply(block(height, `t${height}`))
  house.tend()
  t.equal(house.left(), 9, 'frozen, and waiting for the next block')
  house.apply(block(119, 't119'))
  house.tend()
  t.equal(house.left(), 1)
  t.equal(house.ids().length, 22)
  await house.close()
})

t.test('an item that moves behind what a flush has read is there once', async (t) => {
  const house = writerOf('flush-moved', { rows: 5, forkDepth: 0, rowsEach: 1 })
  house.apply(block(100, 'a'), items('a', ['z'], true), block(101, 'b'), items('b', ['y']))
  t.equal(house.writer.tendSegments(), 'idle')
  house.apply(block(102, 'c'))
  // The tables are frozen; then the owner, and the first four rows.
  for (let step = 0; step < 2; step += 1) t.equal(house.writer.tendSegments(), 'more')
  t.equal(house.left(), 5)
  house.apply(items('b', ['z']))
  t.same(house.ids(), ['a', 'b', 'y', 'z', 'c'])
  house.tend()
  t.same(house.ids(), ['a', 'b', 'y', 'z', 'c'])
  t.equal(house.index.row(idBytes(idOf('z')))?.height, 101)
  t.same(house.index.counts(), { rows: 5, blocks: 3, pending: 0 })
  await house.close()
})

t.test('an item that is found at a lower offset while it is flushed is there once', async (t) => {
  const house = writerOf('flush-lower', { rows: 5, forkDepth: 0, rowsEach: 1 })
  house.apply(block(100, 'a'), items('a', ['z'], false, 70), block(101, 'b'), items('b', ['y']))
  t.equal(house.writer.tendSegments(), 'idle')
  house.apply(block(102, 'c'))
  for (let step = 0; step < 2; step += 1) t.equal(house.writer.tendSegments(), 'more')
  t.equal(house.left(), 5)
  house.apply(items('a', ['z'], false, 30))
  house.tend()
  t.same(house.ids(), ['a', 'z', 'b', 'y', 'c'])
  t.equal(house.index.row(idBytes(idOf('z')))?.place?.rootItemOffset, 30)
  t.same(house.index.counts(), { rows: 5, blocks: 3, pending: 0 })
  await house.close()
})

t.test('a row that is removed while its segment is merged stays removed', async (t) => {
  const merges = { segmentsAlike: 2, levelMax: 1 }
  const house = writerOf('flush-merged', { rows: 3, forkDepth: 0, merges })
  house.apply(block(100, 'a'), items('a', ['x', 'y']))
  while (house.left() > 0) house.writer.tendSegments()
  house.apply(block(101, 'b'), items('b', ['v', 'w']))
  while (house.left() > 0) {
    house.writer.tendSegments()
  }
  t.equal(openIndexTables(house.reading.environment).segments.all().length, 2)
  t.equal(house.writer.tendSegments(), 'more')
  t.equal(openIndexTables(house.reading.environment).segments.all().length, 2, 'the merge has only begun')
  house.apply({ kind: 'remove-items', keys: rowKey(100, 0, true, idBytes(idOf('y'))) })
  t.same(house.ids(), ['a', 'x', 'b', 'v', 'w'])
  house.tend()
  t.same(house.ids(), ['a', 'x', 'b', 'v', 'w'])
  t.equal(openIndexTables(house.reading.environment).segments.all().length, 1)
  t.equal(house.index.row(idBytes(idOf('y'))), undefined)
  t.same(house.index.counts(), { rows: 5, blocks: 2, pending: 0 })
  await house.close()
})

t.test('a reader that was told of no commit finds what stays in the tables', async (t) => {
  const house = writerOf('flush-untold', { rows: 3, forkDepth: 1, isLast: true }, filesOnly)
  house.apply(block(100, 'a'), items('a', ['v', 'w', 'x']), block(101, 'b'), items('b', ['y', 'z']))
  const tags = [{ name: Buffer.from('Type'), values: [Buffer.from('z')], match: 'is' as const }]
  const found = (): unknown[] => {
    house.left()
    const { entries } = house.index.rows({ tags }, { backwards: true, limit: 9 }, tireless())
    return [house.index.row(idBytes(idOf('z')))?.height, entries.map(({ height }) => height)]
  }
  t.same(found(), [101, [101]])
  house.tend()
  t.equal(house.left(), 3)
  t.same(found(), [101, [101]])
  await house.close()
})

t.test('the place of a transaction in the weave is learned after it left the tables', async (t) => {
  const house = writerOf('flush-placed', { rows: 2, forkDepth: 0 })
  house.apply(block(100, 'a'), items('a', ['x']), block(101, 'b'), items('b', ['y']))
  house.tend()
  t.equal(house.left(), 0)
  t.equal(house.index.transactionAt(70), undefined)
  house.apply({ kind: 'index-offsets', offsets: [{ id: idOf('a'), weaveEnd: 77 }] })
  t.same(house.ids(), ['a', 'x', 'b', 'y'])
  t.same(house.index.transactionAt(70)?.id, idBytes(idOf('a')))
  t.equal(house.index.transactionIn(100, 0)?.transfer?.weaveEnd, 77)
  house.apply({ kind: 'remove-items', keys: rowKey(100, 0, true, idBytes(idOf('x'))) })
  // The row that was removed from the segment and the one in the tables have the same key.
  for (const backwards of [false, true]) {
    for (let steps = 0; steps < 12; steps += 1) {
      const ids = house.walk(backwards, steps)
      t.same(backwards ? ids.reverse() : ids, ['a', 'b', 'y'], `in efforts of ${steps} steps`)
    }
  }
  house.apply({ kind: 'unwind', fromHeight: 100 })
  t.same(house.ids(), [])
  t.equal(house.index.transactionAt(70), undefined)
  t.same(house.index.counts(), { rows: 0, blocks: 0, pending: 0 })
  await house.close()
})
