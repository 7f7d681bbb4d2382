/** Bits flip in segments of the index: blocks whose rows are lost leave it, so that they are fetched anew. */
import { strict as assert } from 'node:assert'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import t, { type Test } from 'tap'
import { Chain } from '../../bench/index/chain.js'
import { systemClock } from '../../src/actor/clock.js'
import { CatalogKeeper } from '../../src/catalog/catalog-keeper.js'
import { checkIndex } from '../../src/catalog/index-check.js'
import type { ChainIndex } from '../../src/catalog/index-reader.js'
import { isRefusal } from '../../src/format/refusal.js'
import { pageBytes } from '../../src/index/checked-file.js'
import { sections } from '../../src/index/footer.js'
import { salvagedRows } from '../../src/index/salvaged-rows.js'
import { Segment } from '../../src/index/segment.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'
import { faultsIn, filled, flipBit, logOf, messagesOf, opened, unseen } from './damaged-index.js'

const merges = { segmentsAlike: 64, levelMax: 1 }
const flush = { rows: 400, forkDepth: 3, merges }
const blocks = [...new Chain({ items: 600, itemsPerBundle: 30, bundlesPerBlock: 2, seed: 4 }).blocks()]
/** A byte in the middle of a page that has only rows. */
function placeOfRows({ footer }: Segment): number {
  return (Math.ceil(footer.rows / pageBytes) + 2) * pageBytes + 777
}

t.test('blocks whose rows are damaged leave the index, and are as before when they come again', async (t) => {
  const path = await filled(blocks, flush)
  const before = opened(path)
  const rows = before.index.stretch(0, 0xff_ffff, undefined, 100_000)
  const counts = before.index.counts()
  await before.environment.close()
  // Pages are believed for as long as a file is open: the damage is there before it is opened again.
  const { environment, tables, generations, index } = opened(path)
  const [first] = tables.segments.all()
  if (first === undefined) throw new Error('no segment')
  flipBit(path, first.number, placeOfRows(first.segment))
  const own = Segment.open(first.segment.file.path) as Segment
  const lost = [...salvagedRows(own)].flatMap((one) => ('lost' in one ? [one.from] : []))
  own.close()
  t.ok(lost.length > 5 && lost.length < 200, `${lost.length} rows are lost`)
  const heights = new Set(lost)
  const problem = faultsIn(checkIndex(tables).problems)[0] ?? ''
  t.match(problem, `${lost.length} rows of blocks ${Math.min(...heights)} to ${Math.max(...heights)}`)

  const { lines, log } = logOf()
  const keeper = new CatalogKeeper({ path, touchEveryMs: 0, flush }, generations, systemClock, log)
  const some = rows.find(({ height }) => height === Math.min(...heights))
  t.equal(
    index.known(() => index.stretch(0, 0xff_ffff, undefined, 100_000)),
    undefined,
    'a reader meets the damage, and does not believe it',
  )
  const last = blocks.at(-1)
  if (last === undefined || some === undefined) throw new Error('no block')
  const say = () => keeper.handle({ kind: 'all', requests: messagesOf(last) })
  t.notOk(isRefusal(await say()))
  await eventually('the segment is written anew', async () => {
    await say()
    index.refresh()
    return !tables.segments.all().some(({ number }) => number === first.number)
  })
  index.refresh()
  const left = index.known(() => index.stretch(0, 0xff_ffff, undefined, 100_000))
  const expected = rows.filter(({ height }) => !heights.has(height ?? -1))
  t.same(left, expected, 'all other blocks are as they were')
  for (const height of heights) t.equal(index.block(height), undefined, 'a gap for the import')
  t.match(index.segmentTotals().mended, { segments: 1, rows: lost.length, blocks: heights.size })
  t.match(lines.find(({ words }) => words?.includes('fetched anew'))?.about, {
    rows: lost.length,
    blocks: heights.size,
    from: Math.min(...heights),
    to: Math.max(...heights),
  })
  t.same(faultsIn(checkIndex(tables).problems), [])

  for (const block of blocks.filter(({ block: { height } }) => heights.has(height))) {
    for (const message of messagesOf(block)) t.notOk(isRefusal(await keeper.handle(message)))
  }
  index.refresh()
  const again = index.stretch(0, 0xff_ffff, undefined, 100_000)
  t.same(unseen(again), unseen(rows), 'field by field')
  t.same(index.counts(), counts)
  t.same(faultsIn(checkIndex(tables).problems), [])
  await keeper.close()
  await environment.close()
})

/** An index with one segment whose sections have pages of their own: each damage is done to a copy of it. */
const many = [...new Chain({ items: 1000, itemsPerBundle: 10, bundlesPerBlock: 2, seed: 5 }).blocks()]
const large = { ...flush, rows: 800 }

interface Whole {
  readonly path: string
  readonly rows: ReturnType<ChainIndex['stretch']>
  readonly segment: Segment
  /** Its number in the list. */
  readonly number: number
}

let made: Promise<Whole> | undefined

async function makeWhole(): Promise<Whole> {
  const path = await filled(many, large)
  const { tables, index } = opened(path)
  const [live] = tables.segments.all()
  if (live === undefined) throw new Error('no segment')
  return { path, rows: index.stretch(0, 0xff_ffff, undefined, 100_000), ...live }
}

function wholeIndex(): Promise<Whole> {
  made ??= makeWhole()
  return made
}

/** Flips bits of a copy, lets the keeper mend it, and brings the blocks again that left; how many rows were lost. */
async function mended(t: Test, name: string, places: readonly number[]): Promise<number> {
  const { path: source, rows: wholeRows, number } = await wholeIndex()
  const path = join(scratch('segment-mending'), 'catalog')
  cpSync(source, path, { recursive: true })
  for (const place of places) flipBit(path, number, place)
  const { environment, tables, generations, index } = opened(path)
  t.ok([...(tables.segments.all()[0]?.segment.damaged() ?? [])].length > 0, `${name} is damaged`)
  const { lines, log } = logOf()
  const keeper = new CatalogKeeper({ path, touchEveryMs: 0, flush: large }, generations, systemClock, log)
  generations.reportDamage()
  const line = await eventually(`${name} is mended`, async () => {
    // A change that needs a damaged page is refused meanwhile.
    await keeper.handle({ kind: 'touched', digests: [] })
    return lines.find(({ words }) => words?.includes('anew'))
  })
  index.refresh()
  const gaps = many.filter(({ block: { height } }) => index.block(height) === undefined)
  const gone = new Set(gaps.map(({ block: { height } }) => height))
  const standing = wholeRows.filter(({ height }) => !gone.has(height ?? -1))
  t.ok(
    isDeepStrictEqual(index.stretch(0, 0xff_ffff, undefined, 100_000), standing),
    `${name}: all other blocks are as they were`,
  )
  t.same(faultsIn(checkIndex(tables).problems), [], name)
  for (const block of gaps) {
    for (const message of messagesOf(block)) assert.ok(!isRefusal(await keeper.handle(message)))
  }
  index.refresh()
  t.ok(
    isDeepStrictEqual(unseen(index.stretch(0, 0xff_ffff, undefined, 100_000)), unseen(wholeRows)),
    `${name}: field by field`,
  )
  for (const row of wholeRows) {
    if (index.row(row.id)?.height !== row.height) t.fail(`${name}: no id leads to a row`)
  }
  await keeper.close()
  await environment.close()
  return (line.about as { rows: number }).rows
}

t.test('damage in every part of a segment is mended', async (t) => {
  const { footer, file } = (await wholeIndex()).segment
  const [sums, end] = [footer.end + 9, file.sizeBytes - 100]
  const places = sections.map((name, at): [string, number] => {
    const next = sections[at + 1] === undefined ? footer.end : footer[sections[at + 1] as 'end']
    return [name, Math.floor((footer[name] + next) / 2)]
  })
  const lost = new Map<string, number>()
  for (const [name, place] of [...places, ['checksums', sums] as const, ['footer', end] as const]) {
    lost.set(name, await mended(t, name, [place]))
  }
  t.equal(lost.get('footer'), 0, 'there are two')
  t.equal(lost.get('ids'), 0, 'ids stand in rows')
  t.ok((lost.get('rows') ?? 0) > 0)
  t.equal(lost.get('forms'), footer.rowCount, 'no row can be read without them')
})

t.test('damage in two segments, and in two parts, is mended', async (t) => {
  const { rows, words, groups, starts } = (await wholeIndex()).segment.footer
  t.ok((await mended(t, 'words and rows', [words + 50, rows + 3 * pageBytes])) > 0)
  t.ok((await mended(t, 'groups and starts', [groups + 4100, starts + 10])) > 0)
  const path = await filled(blocks, flush)
  const { environment, tables, generations, index } = opened(path)
  const live = tables.segments.all()
  t.ok(live.length > 1)
  const before = index.stretch(0, 0xff_ffff, undefined, 100_000)
  const blocksBefore = index.counts().blocks
  await environment.close()
  for (const { number, segment } of live) flipBit(path, number, segment.footer.groups + 20)
  const again = opened(path)
  const { lines, log } = logOf()
  const keeper = new CatalogKeeper({ path, touchEveryMs: 0, flush }, again.generations, systemClock, log)
  again.generations.reportDamage()
  await eventually('both are mended', async () => {
    await keeper.handle({ kind: 'touched', digests: [] })
    return lines.filter(({ words }) => words?.includes('anew')).length === live.length
  })
  t.same(faultsIn(checkIndex(again.tables).problems), [])
  for (const block of blocks) {
    again.index.refresh()
    if (again.index.block(block.block.height) !== undefined) continue
    for (const message of messagesOf(block)) assert.ok(!isRefusal(await keeper.handle(message)))
  }
  again.index.refresh()
  t.equal(again.index.counts().blocks, blocksBefore)
  t.same(unseen(again.index.stretch(0, 0xff_ffff, undefined, 100_000)), unseen(before))
  t.notOk(generations.isDamaged)
  await keeper.close()
  await again.environment.close()
})
