import { closeSync, openSync, readdirSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Chain } from '../../bench/index/chain.js'
import { Generations } from '../../src/catalog/generations.js'
import { checkIndex } from '../../src/catalog/index-check.js'
import { compactIndex } from '../../src/catalog/index-compact.js'
import { ChainIndex } from '../../src/catalog/index-reader.js'
import { indexStats } from '../../src/catalog/index-stats.js'
import { openIndexTables } from '../../src/catalog/index-tables.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { blockMessage, itemsMessage, openHouse } from './index-model.js'

const flush = { rows: 400, forkDepth: 3, merges: { segmentsAlike: 2, levelMax: 3 } }

/** The made-up owners of the bench have addresses of their own. */
const sound = (problems: readonly string[]): string[] =>
  problems.filter((problem) => !problem.startsWith("the owner's key"))

/** An index without segments, and what it says. */
async function filled() {
  const house = openHouse()
  const chain = new Chain({ items: 2000, itemsPerBundle: 50, bundlesPerBlock: 2, seed: 4 })
  for (const { block, transactions, bundles } of chain.blocks()) {
    await house.apply([blockMessage(block, transactions)])
    await house.apply(bundles.map(({ rootId, items }) => itemsMessage(rootId, items)))
  }
  const rows = house.index.stretch(0, 0xff_ffff, undefined, 100_000)
  const counts = house.index.counts()
  await house.close()
  return { path: house.path, rows, counts }
}

function opened(path: string) {
  const { environment } = openCatalogTables(path)
  const generations = new Generations()
  const tables = openIndexTables(environment)
  return { environment, tables, generations, index: new ChainIndex(environment, generations) }
}

t.test('compacting takes stable rows of an old index into segments, and changes no answer', async (t) => {
  const { path, rows, counts } = await filled()
  const { environment, tables } = opened(path)
  const before = indexStats(tables)
  compactIndex(tables, flush)
  await environment.close()

  const after = opened(path)
  t.ok(after.tables.sets.counts().rows < rows.length / 4, `${after.tables.sets.counts().rows} rows stay`)
  t.same(after.index.stretch(0, 0xff_ffff, undefined, 100_000), rows)
  t.same(after.index.counts(), counts)
  t.same(sound(checkIndex(after.tables, 100_000).problems), [])

  const stats = indexStats(after.tables)
  t.equal(stats.rows, before.rows)
  t.equal(before.segments.length, 0)
  const sum = (parts: readonly { readonly bytes: number }[]): number =>
    parts.reduce((bytes, part) => bytes + part.bytes, 0)
  t.equal(sum(stats.sections), sum(stats.segments), 'the sections are all bytes of the files')
  t.ok(sum(stats.tables) + sum(stats.sections) < sum(before.tables) / 2)
  t.same(
    readdirSync(join(path, 'segments')).sort(),
    stats.segments.map(({ number }) => `segment-${number}`).sort(),
    'merged files are gone',
  )
  await after.environment.close()
})

t.test('a damaged segment is found by a check, and never believed', async (t) => {
  const { path } = await filled()
  const before = opened(path)
  compactIndex(before.tables, flush)
  const [first] = before.tables.segments.all()
  const { rows: start } = first?.segment.footer ?? { rows: 0 }
  const id = first?.segment.idOf(0) ?? Buffer.alloc(32)
  await before.environment.close()

  const file = openSync(join(path, 'segments', `segment-${first?.number}`), 'r+')
  writeSync(file, Buffer.from('overwritten'), 0, 11, start + 40)
  closeSync(file)

  const { environment, tables, index, generations } = opened(path)
  t.match(checkIndex(tables).problems.join(), /segment-\d+ has 1 damaged pages/)
  t.equal(
    index.known(() => index.row(id)),
    undefined,
  )
  t.ok(generations.isDamaged, 'and it is reported')
  await environment.close()
})
