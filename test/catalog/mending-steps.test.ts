/** Damaged segments are written anew in short steps, with little room, beside removals, and after what fails. */
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import t, { type Test } from 'tap'
import { Chain, type ChainBlock } from '../../bench/index/chain.js'
import { checkIndex } from '../../src/catalog/index-check.js'
import type { IndexTables } from '../../src/catalog/index-tables.js'
import { IndexWriter } from '../../src/catalog/index-writer.js'
import { UpkeepFaults } from '../../src/catalog/segment-upkeep.js'
import { DamagedSegment } from '../../src/index/checked-file.js'
import type { Segment } from '../../src/index/segment.js'
import { SegmentKeeper } from '../../src/index/segment-keeper.js'
import { scratch } from '../scratch.js'
import { faultsIn, filled, flipBit, logOf, messagesOf, opened, unseen } from './damaged-index.js'

const merges = { segmentsAlike: 64, levelMax: 1 }
const flush = { rows: 700, forkDepth: 3, merges }

/** Blocks with one small bundle each, whose transactions have places in the weave. */
function* placedBlocks(): Generator<ChainBlock> {
  let end = 0
  for (const { block, transactions, bundles } of new Chain({
    items: 800,
    itemsPerBundle: 2,
    bundlesPerBlock: 1,
    seed: 6,
  }).blocks()) {
    const placed = transactions.map((one) => {
      end += 1000
      return { ...one, weaveEnd: end }
    })
    yield { block: { ...block, weaveSize: String(end) }, transactions: placed, bundles }
  }
}
const blocks = [...placedBlocks()]

const everything = [0, 0xff_ffff, undefined, 100_000] as const

interface Whole {
  readonly path: string
  readonly rows: ReturnType<ReturnType<typeof opened>['index']['stretch']>
  readonly number: number
  readonly segment: Segment
}
let made: Promise<Whole> | undefined

/** An index with one segment, and few rows in tables. */
function wholeIndex(): Promise<Whole> {
  made ??= filled(blocks, flush).then((path) => {
    const { tables, index } = opened(path)
    const [live] = tables.segments.all()
    if (live === undefined) throw new Error('no segment')
    return { path, rows: index.stretch(...everything), number: live.number, segment: live.segment }
  })
  return made
}

/** A copy with a flipped bit. */
async function damaged(at: (segment: Segment) => number): Promise<string> {
  const { path: source, segment, number } = await wholeIndex()
  const path = join(scratch('mending-steps'), 'catalog')
  cpSync(source, path, { recursive: true })
  flipBit(path, number, at(segment))
  return path
}

/** The writer of an index that has heard of damage. */
function writerOf(tables: IndexTables, faults = new UpkeepFaults(() => 1)) {
  const { lines, log } = logOf()
  const isMended = (): boolean => lines.some(({ words = '' }) => /are (fetched|written) anew/.test(words))
  return { writer: new IndexWriter(tables, undefined, flush, log, faults), lines, isMended, faults }
}

/** Lets the writer go on until what is damaged is written anew. */
function mend({ writer, isMended }: ReturnType<typeof writerOf>, each: () => void = () => undefined): void {
  for (let step = 0; !isMended(); step += 1) {
    if (step > 5000) throw new Error('nothing is mended')
    writer.tendSegments()
    each()
  }
}

/** Brings the blocks again that are not there; all is as it was then. */
async function refill(t: Test, path: string): Promise<void> {
  const { environment, tables, index } = opened(path)
  const { rows } = await wholeIndex()
  t.same(faultsIn(checkIndex(tables).problems), [])
  const { writer } = writerOf(tables, new UpkeepFaults())
  const gaps = blocks.filter(({ block: { height } }) => index.block(height) === undefined)
  environment.write(() => {
    for (const request of gaps.flatMap(messagesOf)) writer.apply(request, 1, () => undefined)
    writer.settle()
  })
  index.refresh()
  t.ok(isDeepStrictEqual(unseen(index.stretch(...everything)), unseen(rows)), 'field by field')
  t.same(faultsIn(checkIndex(tables).problems), [])
  writer.close()
  await environment.close()
}

const formsOf = ({ footer }: Segment): number => footer.forms + 1
const rowsOf = ({ footer }: Segment): number => footer.rows + 3 * 4096

t.test('lost blocks leave some at a time, and a kill between any two loses nothing', async (t) => {
  const { environment, tables } = opened(await damaged(formsOf))
  const counts: number[] = [tables.blocks.count()]
  mend(writerOf(tables), () => {
    if (tables.blocks.count() !== counts.at(-1)) counts.push(tables.blocks.count())
  })
  const steps = counts.slice(1).map((count, at) => (counts[at] as number) - count)
  t.ok(steps.length > 2 && Math.max(...steps) <= 64, `blocks that left at once: ${steps}`)
  t.same(faultsIn(checkIndex(tables).problems), [])
  const left = tables.blocks.count()
  await environment.close()
  for (const killed of [1, steps.length - 1]) {
    const path = await damaged(formsOf)
    const first = opened(path)
    const { writer } = writerOf(first.tables)
    while (first.tables.blocks.count() > (counts[killed] as number)) writer.tendSegments()
    writer.close()
    await first.environment.close()
    const second = opened(path)
    mend(writerOf(second.tables))
    t.equal(second.tables.blocks.count(), left)
    await second.environment.close()
    await refill(t, path)
  }
})

t.test('mending waits for room on the disk, however long, without a new report', async (t) => {
  const path = await damaged(rowsOf)
  const { environment, tables } = opened(path)
  const house = writerOf(tables)
  const { hasRoom } = SegmentKeeper.prototype
  t.teardown(() => {
    SegmentKeeper.prototype.hasRoom = hasRoom
  })
  SegmentKeeper.prototype.hasRoom = () => false
  for (let reports = 2; reports < 40; reports += 1) {
    for (let step = 0; step < 10; step += 1) house.writer.tendSegments()
    Object.assign(house.faults, { reports: () => reports })
  }
  t.match(house.lines.at(-1)?.words, /no room/)
  t.ok(house.lines.length < 3, 'which is in the log once')
  SegmentKeeper.prototype.hasRoom = hasRoom
  mend(house)
  await environment.close()
  await refill(t, path)
})

t.test('removed rows stay removed: those from before, and those that are removed meanwhile', async (t) => {
  const { number, segment } = await wholeIndex()
  const path = await damaged(({ file }) => file.sizeBytes - 100)
  const { environment, tables, index } = opened(path)
  const gone: Buffer[] = []
  const remove = (row: number): void => {
    const live = tables.segments.all().find((one) => one.number === number)
    if (live === undefined) return
    environment.write(() => tables.segments.remove({ live, row }))
    gone.push(segment.idOf(row))
  }
  for (let row = 1; row < 40; row += 2) remove(row)
  let next = 100
  const house = writerOf(tables)
  mend(house, () => {
    remove(next)
    next += 3
  })
  index.refresh()
  t.ok(gone.length > 22, `${gone.length} rows`)
  for (const id of gone) t.equal(index.row(id), undefined)
  const expected = (await wholeIndex()).rows.filter(({ id }) => !gone.some((one) => one.equals(id)))
  t.ok(isDeepStrictEqual(index.stretch(...everything), expected), 'and all others are there')
  await environment.close()
})

t.test('what a transaction of mending did is forgotten where it is undone', async (t) => {
  const path = await damaged(formsOf)
  const { environment, tables } = opened(path)
  let house = writerOf(tables)
  // Rows of blocks that will leave are in the tables.
  const write = environment.write.bind(environment)
  let failures = 0
  environment.write = <Result>(act: () => Result): Result =>
    write(() => {
      const result = act()
      failures += 1
      if (failures === 1) throw new DamagedSegment(path, 0, 'is damaged, in this test')
      return result
    })
  for (let step = 0; failures < 2 && step < 5000; step += 1) {
    try {
      house.writer.tendSegments()
    } catch (error) {
      if (!(error instanceof DamagedSegment)) throw error
      // As the catalog's keeper does.
      house.writer.close()
      house = writerOf(tables, house.faults)
    }
  }
  environment.write = write
  mend(house)
  t.ok(failures > 1)
  await environment.close()
  await refill(t, path)
})
