/** Bits flip in segments of the index: blocks whose rows are lost leave it, so that they are fetched anew. */
import { closeSync, openSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Chain } from '../../bench/index/chain.js'
import { systemClock } from '../../src/actor/clock.js'
import { CatalogKeeper } from '../../src/catalog/catalog-keeper.js'
import { Generations } from '../../src/catalog/generations.js'
import { checkIndex } from '../../src/catalog/index-check.js'
import { compactIndex } from '../../src/catalog/index-compact.js'
import { ChainIndex } from '../../src/catalog/index-reader.js'
import { openIndexTables } from '../../src/catalog/index-tables.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { isRefusal } from '../../src/format/refusal.js'
import { pageBytes } from '../../src/index/checked-file.js'
import { lostRows } from '../../src/index/lost-rows.js'
import type { Segment } from '../../src/index/segment.js'
import { eventually } from '../eventually.js'
import { blockMessage, itemsMessage, openHouse } from './index-model.js'

const merges = { segmentsAlike: 64, levelMax: 1 }
const flush = { rows: 400, forkDepth: 3, merges }
const blocks = [...new Chain({ items: 600, itemsPerBundle: 30, bundlesPerBlock: 2, seed: 4 }).blocks()]
const messagesOf = ({ block, transactions, bundles }: (typeof blocks)[number]) => [
  blockMessage(block, transactions),
  ...bundles.map(({ rootId, items }) => itemsMessage(rootId, items)),
]

/** The made-up owners of the bench have addresses of their own. */
const sound = (problems: readonly string[]): string[] =>
  problems.filter((problem) => !problem.startsWith("the owner's key"))

/** An index whose stable rows are in segments. */
async function filled(): Promise<string> {
  const house = openHouse()
  for (const block of blocks) for (const message of messagesOf(block)) await house.apply([message])
  await house.close()
  const { environment } = openCatalogTables(house.path)
  compactIndex(openIndexTables(environment), flush)
  await environment.close()
  return house.path
}

function opened(path: string) {
  const { environment } = openCatalogTables(path)
  const generations = new Generations()
  const tables = openIndexTables(environment)
  return { environment, tables, generations, index: new ChainIndex(environment, generations) }
}

function flipBit(path: string, number: number, at: number): void {
  const file = openSync(join(path, 'segments', `segment-${number}`), 'r+')
  const byte = Buffer.alloc(1)
  readSync(file, byte, 0, 1, at)
  byte[0] = (byte[0] as number) ^ 16
  writeSync(file, byte, 0, 1, at)
  closeSync(file)
}

/** A byte in the middle of a page that has only rows. */
function placeOfRows({ footer }: Segment): number {
  return (Math.ceil(footer.rows / pageBytes) + 2) * pageBytes + 777
}

function logOf() {
  const lines: { readonly about: object; readonly words: string | undefined }[] = []
  const note = (about: object, words?: string): void => void lines.push({ about, words })
  return { lines, log: { info: () => undefined, warn: note, error: note } }
}

t.test('blocks whose rows are damaged leave the index, and are as before when they come again', async (t) => {
  const path = await filled()
  const before = opened(path)
  const rows = before.index.stretch(0, 0xff_ffff, undefined, 100_000)
  const counts = before.index.counts()
  await before.environment.close()
  // Pages are believed for as long as a file is open: the damage is there before it is opened again.
  const { environment, tables, generations, index } = opened(path)
  const [first] = tables.segments.all()
  if (first === undefined) throw new Error('no segment')
  flipBit(path, first.number, placeOfRows(first.segment))
  const lost = lostRows(first.segment, [Math.floor(placeOfRows(first.segment) / pageBytes)]) ?? []
  t.ok(lost.length > 5 && lost.length < 200, `${lost.length} rows are lost`)
  const heights = new Set(lost.map((row) => first.segment.groups.of(row).height))
  const problem = sound(checkIndex(tables).problems)[0] ?? ''
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
  t.same(sound(checkIndex(tables).problems), [])

  for (const block of blocks.filter(({ block: { height } }) => heights.has(height))) {
    for (const message of messagesOf(block)) t.notOk(isRefusal(await keeper.handle(message)))
  }
  index.refresh()
  const again = index.stretch(0, 0xff_ffff, undefined, 100_000)
  const unseen = (all: typeof rows) => all.map((row) => ({ ...row, seenSeconds: 0 }))
  t.same(unseen(again), unseen(rows), 'field by field')
  t.same(index.counts(), counts)
  t.same(sound(checkIndex(tables).problems), [])
  await keeper.close()
  await environment.close()
})

t.test('damage anywhere but in rows is told once, and takes nothing away', async (t) => {
  const path = await filled()
  const { environment, tables, generations, index } = opened(path)
  const [first] = tables.segments.all()
  if (first === undefined) throw new Error('no segment')
  const id = first.segment.idOf(3)
  flipBit(path, first.number, first.segment.footer.ids + 50)
  const blocksBefore = index.counts().blocks
  t.match(checkIndex(tables).problems.join(), 'not of rows')
  const { lines, log } = logOf()
  const keeper = new CatalogKeeper({ path, touchEveryMs: 0, flush }, generations, systemClock, log)
  const last = blocks.at(-1)
  if (last === undefined) throw new Error('no block')
  for (let round = 0; round < 8; round += 1) {
    index.known(() => index.row(id))
    generations.reportDamage()
    await keeper.handle({ kind: 'all', requests: messagesOf(last) })
  }
  await eventually('the damage in the log', () => lines.some(({ words }) => words?.includes('not of rows')))
  t.equal(lines.filter(({ words }) => words?.includes('not of rows')).length, 1)
  index.refresh()
  t.equal(index.counts().blocks, blocksBefore)
  t.equal(tables.segments.all()[0]?.number, first.number)
  await keeper.close()
  await environment.close()
})
