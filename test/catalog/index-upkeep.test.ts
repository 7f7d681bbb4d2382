import { createHash } from 'node:crypto'
import t from 'tap'
import { Chain } from '../../bench/index/chain.js'
import { systemClock } from '../../src/actor/clock.js'
import { CatalogKeeper } from '../../src/catalog/catalog-keeper.js'
import { Generations } from '../../src/catalog/generations.js'
import { checkIndex } from '../../src/catalog/index-check.js'
import { compactIndex } from '../../src/catalog/index-compact.js'
import type { IndexRequest } from '../../src/catalog/index-protocol.js'
import { openIndexTables } from '../../src/catalog/index-tables.js'
import { IndexedCatalog } from '../../src/catalog/indexed.js'
import { packTransactions } from '../../src/catalog/pack.js'
import { LmdbCatalog } from '../../src/catalog/reader.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import type { Id } from '../../src/format/id.js'
import { idBytes } from '../../src/format/id.js'
import { isRefusal } from '../../src/format/refusal.js'
import { scratch } from '../scratch.js'
import { blockMessage, dump, filesOnly, itemsMessage, openHouse } from './index-model.js'

const sound = (problems: readonly string[]): string[] =>
  problems.filter((problem) => !problem.startsWith("the owner's key"))

const blocks = [...new Chain({ items: 1500, itemsPerBundle: 50, bundlesPerBlock: 3, seed: 8 }).blocks()]

/** Told in an order that leaves blocks of postings half full. */
async function grown() {
  const house = openHouse()
  for (const { block, transactions } of blocks) await house.apply([blockMessage(block, transactions)])
  const bundles = blocks.flatMap(({ bundles }) => bundles)
  const order = (id: Id): string => createHash('sha256').update(id).digest('hex')
  bundles.sort((one, other) => (order(one.rootId) < order(other.rootId) ? -1 : 1))
  for (const { rootId, items } of bundles) await house.apply([itemsMessage(rootId, items)])
  return house
}

t.test('compacting drops unused rows and changes no answer', async (t) => {
  const house = await grown()
  await house.apply([{ kind: 'unwind', fromHeight: 1006 }])
  const before = dump(house.tables)
  await house.keeper.close()
  const { environment } = openCatalogTables(house.path)
  const tables = openIndexTables(environment)
  const report = compactIndex(tables)
  t.ok(report.blocksAfter < report.blocksBefore)
  t.ok(report.wordsDropped > 0)
  t.same(dump(tables), before)
  t.same(sound(checkIndex(tables, 1_000_000).problems), [])
  t.same(compactIndex(tables), {
    blocksBefore: report.blocksAfter,
    blocksAfter: report.blocksAfter,
    wordsDropped: 0,
  })
  const copy = scratch('copy')
  await environment.copyTo(copy)
  const copied = openCatalogTables(copy)
  t.same(dump(openIndexTables(copied.environment)), before)
  await copied.environment.close()
  await environment.close()
})

t.test('a check reports missing rows and surplus rows', async (t) => {
  const house = await grown()
  const { tables } = house
  const [set] = tables.sets.sets
  const reported = (act: () => void): string[] => {
    let problems: readonly string[] = []
    try {
      tables.environment.write(() => {
        act()
        problems = checkIndex(tables, 1_000_000).problems
        throw new Error('undo')
      })
    } catch (error) {
      t.equal((error as Error).message, 'undo')
    }
    return sound(problems)
  }
  const first = <Entry>(entries: Iterable<Entry>): Entry => [...entries][0] as Entry
  t.same(
    reported(() => undefined),
    [],
  )
  t.match(
    reported(() => set.ids.remove(first(set.ids.keys({})))),
    [/no id leads to/],
  )
  t.match(reported(() => set.rows.remove(first(set.rows.keys({})))).join(), /postings where the rows have/)
  t.match(
    reported(() => set.postings.remove(first(set.postings.keys({})))).join(),
    /postings where the rows have/,
  )
  t.match(
    reported(() => set.numbers.remove(first(set.numbers.keys({})))).join(),
    /missing word|has no name|words for/,
  )
  t.match(reported(() => tables.blocks.remove(first(tables.blocks.keys({})))).join(), /which is not there/)
  t.match(
    reported(() => set.pending.put(Buffer.alloc(20), Buffer.alloc(0))),
    [/pending entries/],
  )
  t.match(
    reported(() => tables.weave.put(Buffer.alloc(8), Buffer.alloc(16))),
    [/ends in the weave/],
  )
  await house.close()
})

t.test('attributes join learned records with those of the chain', async (t) => {
  const house = await grown()
  const generations = new Generations()
  const learned = new LmdbCatalog(house.path, generations)
  const catalog = new IndexedCatalog(house.path, generations, house.index)
  const bundle = blocks[2]?.bundles[1]
  const item = bundle?.items[7]
  if (bundle === undefined || item === undefined) throw new Error('the chain is too short')
  const attributes = catalog.attributes(item.id)
  t.match(attributes, { size: item.size, height: blocks[2]?.block.height, verified: false })
  t.same(attributes?.place?.path, [bundle.rootId])
  t.equal(attributes?.place?.itemSize, item.size + item.headerSize)
  t.equal(attributes?.header?.tags.length, item.tags.length)
  t.equal(catalog.attributes(bundle.rootId)?.place, undefined)
  const digest = Buffer.alloc(32, 5)
  const wrong = { id: item.id, size: 3, height: 5, verified: false, trusted: true, digest }
  await house.keeper.handle({ kind: 'learn', attributes: [wrong] })
  generations.commit([item.id])
  t.match(catalog.attributes(item.id), {
    size: 3,
    height: blocks[2]?.block.height,
    trusted: true,
    place: attributes?.place ?? {},
  })
  await house.apply([{ kind: 'unwind', fromHeight: 1000 }])
  t.equal(house.index.row(idBytes(item.id)), undefined)
  await learned.close()
  await house.close()
})

t.test(
  'a byte of the weave leads to the transaction that holds it, and to none where there is a gap',
  async (t) => {
    const house = openHouse()
    const [made] = blocks
    if (made === undefined) throw new Error('the chain is empty')
    const [one, two, three] = made.transactions.map((transaction, at) => ({
      ...transaction,
      size: 100,
      weaveEnd: [1100, 1300, 0][at] ?? 0,
    }))
    if (one === undefined || two === undefined || three === undefined)
      throw new Error('the block is too small')
    await house.apply([blockMessage(made.block, [one, two, three])])
    const at = (offset: number): string | undefined => {
      const row = house.index.transactionAt(offset)
      return row && Buffer.from(row.id).toString('base64url')
    }
    t.same([1000, 1001, 1100, 1101, 1200, 1201, 1300, 1301].map(at), [
      undefined,
      one.id,
      one.id,
      undefined,
      undefined,
      two.id,
      two.id,
      undefined,
    ])
    await house.apply([
      {
        kind: 'index-offsets',
        offsets: [
          { id: three.id, weaveEnd: 1200 },
          { id: one.id, weaveEnd: 1300 },
        ],
      },
    ])
    t.same([1100, 1101, 1200, 1201].map(at), [one.id, three.id, three.id, two.id])
    t.same(sound(checkIndex(house.tables).problems), [])
    await house.apply([{ kind: 'unwind', fromHeight: 0 }])
    t.equal(at(1100), undefined)
    t.same(sound(checkIndex(house.tables).problems), [])
    await house.close()
  },
)

t.test('the reply to each message says which rows were added', async (t) => {
  const house = openHouse()
  const [made] = blocks
  const bundle = made?.bundles[0]
  if (made === undefined || bundle === undefined) throw new Error('the chain is empty')
  const outcome = async (request: IndexRequest): Promise<unknown> => {
    const reply = await house.keeper.handle(request)
    const index = isRefusal(reply) ? undefined : reply.index
    return index && [index.added, index.known, index.skipped, index.removed]
  }
  const { rootId, items } = bundle
  const anItem = items[0]?.id ?? rootId
  t.same(await outcome(itemsMessage(rootId, items)), [0, 0, items.length, 0], 'a root that is not known')
  t.same(await outcome(blockMessage(made.block, made.transactions)), [3, 0, 0, 0])
  t.same(await outcome(blockMessage(made.block, made.transactions)), [0, 3, 0, 0])
  t.same(await outcome(itemsMessage(rootId, items)), [items.length, 0, 0, 0])
  t.same(await outcome(itemsMessage(rootId, items)), [0, items.length, 0, 0])
  t.same(await outcome(itemsMessage(anItem, items.slice(0, 2))), [0, 0, 2, 0], 'an item as a root')
  const later = {
    kind: 'index-transactions',
    height: 9,
    transactions: packTransactions(made.transactions),
  } as const
  t.same(await outcome(later), [0, 0, 0, 0], 'a block that is not known')
  const other = { ...made.block, id: Buffer.alloc(48, 77).toString('base64url') }
  t.same(
    await outcome(blockMessage(other, made.transactions.slice(0, 1))),
    [1, 0, 0, 3 + items.length],
    'another block',
  )
  t.same(await outcome({ kind: 'unwind', fromHeight: 0 }), [0, 0, 0, 1])
  t.same(sound(checkIndex(house.tables).problems), [])
  await house.close()
})

t.test('an index of the version before is read as it is, and moves into files as it grows', async (t) => {
  const house = await grown()
  const before = dump(house.tables)
  const meta = house.tables.indexMeta
  house.tables.environment.write(() => {
    meta.put(Buffer.from('version'), Buffer.from('sluice index 1'))
    meta.remove(Buffer.from('word key'))
  })
  await house.close()
  const keeper = new CatalogKeeper(
    { path: house.path, touchEveryMs: 0, spill: filesOnly },
    new Generations(),
    systemClock,
  )
  const { environment } = openCatalogTables(house.path)
  const tables = openIndexTables(environment)
  t.same(dump(tables), before)
  const [set] = tables.sets.sets
  const [ids, words] = [set.ids.count(), set.words.count()]
  for (let commit = 0; commit < 20; commit += 1) {
    await keeper.handle({ kind: 'expire-pending', beforeSeconds: commit, itemsBeforeSeconds: commit })
  }
  environment.refresh()
  t.ok(set.ids.count() < ids)
  t.ok(set.words.count() < words)
  t.same(dump(tables), before)
  t.same(sound(checkIndex(tables, 1_000_000).problems), [])
  await environment.close()
  await keeper.close()
})
