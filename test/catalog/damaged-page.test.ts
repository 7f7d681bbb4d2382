import { closeSync, fstatSync, openSync, readdirSync, readSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Chain } from '../../bench/index/chain.js'
import { systemClock } from '../../src/actor/clock.js'
import { CatalogKeeper } from '../../src/catalog/catalog-keeper.js'
import { Generations } from '../../src/catalog/generations.js'
import { checkIndex } from '../../src/catalog/index-check.js'
import { ChainIndex } from '../../src/catalog/index-reader.js'
import { openIndexTables, segmentLedger } from '../../src/catalog/index-tables.js'
import { IndexedCatalog } from '../../src/catalog/indexed.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { type Id, idBytes, idOfBytes } from '../../src/format/id.js'
import { isRefusal } from '../../src/format/refusal.js'
import { decodeSegmentList } from '../../src/index/segment-list.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'
import { blockMessage, itemsMessage } from './index-model.js'

const pageBytes = 4096
const ids = Array.from({ length: 400 }, (_, at): Id => {
  const bytes = Buffer.alloc(32)
  bytes.writeUInt32BE(Math.imul(at, 2654435761) >>> 0)
  return idOfBytes(bytes)
})
const contentType = 'text/plain'
const about = (id: Id, size: number) => ({ id, size, verified: false, trusted: false, contentType })

/** Overwrites the leaves of the data file that hold this id, in older states too. */
function wipe(path: string, id: Id): number {
  const file = openSync(join(path, 'data.mdb'), 'r+')
  const page = Buffer.alloc(pageBytes)
  let wiped = 0
  // Behind the two headers.
  for (let at = 2 * pageBytes; at < fstatSync(file).size; at += pageBytes) {
    readSync(file, page, 0, pageBytes, at)
    if (!page.includes(Buffer.from(idBytes(id))) || !page.includes(contentType)) continue
    writeSync(file, Buffer.alloc(pageBytes), 0, pageBytes, at)
    wiped += 1
  }
  closeSync(file)
  return wiped
}

t.test('a page that is overwritten while all run stops nothing that does not need it', async (t) => {
  const path = scratch('damaged')
  const generations = new Generations()
  const logged: unknown[] = []
  const quiet = (): void => undefined
  const log = { info: quiet, warn: quiet, error: (_about: object, words?: string) => void logged.push(words) }
  const keeper = new CatalogKeeper({ path, touchEveryMs: 0 }, generations, systemClock, log)
  const { environment } = openCatalogTables(path)
  const catalog = new IndexedCatalog(path, generations, new ChainIndex(environment, generations))
  const learn = (size: number) =>
    Promise.all(ids.map((id) => keeper.handle({ kind: 'learn', attributes: [about(id, size)] })))
  const sizes = (): Map<Id, number> =>
    new Map(
      ids.flatMap((id): [Id, number][] => {
        const known = catalog.attributes(id)
        return known === undefined ? [] : [[id, known.size]]
      }),
    )

  t.notOk((await learn(1)).some(isRefusal))
  t.equal(sizes().size, ids.length)
  t.notOk(generations.isDamaged)

  const victim = ids[200]
  if (victim === undefined) throw new Error('no ids')
  t.ok(wipe(path, victim) > 0)
  const left = sizes()
  t.notOk(left.has(victim))
  t.ok(left.size > ids.length * 0.8, `${left.size} are read in the same turn as those that are lost`)
  t.ok(generations.isDamaged)
  t.same(logged, [], 'the keeper has not met it')

  const replies = await learn(2)
  const refused = ids.filter((_, at) => isRefusal(replies[at]))
  t.same(new Set(refused), new Set(ids.filter((id) => !left.has(id))), 'only what needs the page is refused')
  for (const reply of replies)
    if (isRefusal(reply)) t.match(reply, { refused: 'busy', fault: 'self', message: /damaged/ })
  t.same(sizes(), new Map([...left.keys()].map((id) => [id, 2])))
  await learn(3)
  t.equal(logged.length, 1, 'told once')

  const fresh = idOfBytes(Buffer.alloc(32, 0xee))
  t.match(await keeper.handle({ kind: 'learn', attributes: [about(fresh, 5)] }), { kind: 'committed' })
  t.equal(catalog.attributes(fresh)?.size, 5)
  await catalog.close()
  await environment.close()
  await keeper.close()
})

t.test(
  'a segment of the index that is missing at the start stops nothing that does not need it',
  async (t) => {
    const path = scratch('missing-segment')
    const options = { path, touchEveryMs: 0, flush: { rows: 5, forkDepth: 0 } }
    const logged: unknown[] = []
    const quiet = (): void => undefined
    const log = {
      info: quiet,
      warn: quiet,
      error: (_about: object, words?: string) => void logged.push(words),
    }
    const blocks = [...new Chain({ items: 60, itemsPerBundle: 10, bundlesPerBlock: 1, seed: 4 }).blocks()]
    const give = (keeper: CatalogKeeper, some: typeof blocks) =>
      Promise.all(some.map(({ block, transactions }) => keeper.handle(blockMessage(block, transactions))))
    const first = new CatalogKeeper(options, new Generations(), systemClock, log)
    await give(first, blocks.slice(0, -1))
    const reading = openCatalogTables(path).environment
    const isListed = (): boolean => {
      reading.refresh()
      return openIndexTables(reading).segments.all().length > 0
    }
    t.ok(await eventually('a segment of the list', isListed))
    await reading.close()
    await first.close()
    for (const name of readdirSync(join(path, 'segments'))) rmSync(join(path, 'segments', name))
    const generations = new Generations()
    const keeper = new CatalogKeeper(options, generations, systemClock, log)
    const [id = idOfBytes(Buffer.alloc(32))] = ids
    t.match(await keeper.handle({ kind: 'learn', attributes: [about(id, 7)] }), { kind: 'committed' })
    await give(keeper, blocks.slice(-1))
    t.ok(await eventually('the damage in the log', () => logged.length === 1))
    const { environment } = openCatalogTables(path)
    const catalog = new IndexedCatalog(path, generations, new ChainIndex(environment, generations))
    t.equal(catalog.attributes(id)?.size, 7)
    const index = new ChainIndex(environment, generations)
    t.equal(
      index.known(() => index.row(Buffer.alloc(32, 1))),
      undefined,
      'not called absent, and no error',
    )
    t.ok(generations.isDamaged)
    await catalog.close()
    await environment.close()
    await keeper.close()
  },
)

const quiet = (): void => undefined
const quietLog = { info: quiet, warn: quiet, error: quiet }

/** Numbers, levels and rows of the segments in the list. */
async function listedIn(path: string) {
  const { environment } = openCatalogTables(path)
  const { segments } = decodeSegmentList(segmentLedger(openIndexTables(environment)).read())
  await environment.close()
  return segments
}

t.test('rows leave the tables also where a page that they do not need is damaged', async (t) => {
  const path = scratch('damaged-elsewhere')
  const generations = new Generations()
  const options = { path, touchEveryMs: 0, flush: { rows: 50, forkDepth: 0, rowsEach: 1 } }
  const keeper = new CatalogKeeper(options, generations, systemClock, quietLog)
  await Promise.all(ids.map((id) => keeper.handle({ kind: 'learn', attributes: [about(id, 1)] })))
  t.ok(wipe(path, ids[200] as Id) > 0)
  const replies = await Promise.all(
    ids.map((id) => keeper.handle({ kind: 'learn', attributes: [about(id, 2)] })),
  )
  t.ok(replies.some(isRefusal) && generations.isDamaged, 'the keeper has met it')
  const chain = new Chain({ items: 100, itemsPerBundle: 10, bundlesPerBlock: 1, seed: 4 })
  const messages = [...chain.blocks()].flatMap(({ block, transactions, bundles }) => [
    blockMessage(block, transactions),
    ...bundles.map(({ rootId, items }) => itemsMessage(rootId, items)),
  ])
  t.notOk((await Promise.all(messages.map((message) => keeper.handle(message)))).some(isRefusal))
  const { environment } = openCatalogTables(path)
  const tables = openIndexTables(environment)
  // Nearly all that is committed is undone.
  const leaves = async (): Promise<boolean> => {
    const refused = ids[replies.findIndex(isRefusal)] as Id
    t.ok(isRefusal(await keeper.handle({ kind: 'learn', attributes: [about(refused, 3)] })))
    environment.refresh()
    return tables.segments.count() >= 50
  }
  let isOut = false
  for (let commits = 0; commits < 20_000 && !isOut; commits += 1) isOut = await leaves()
  t.ok(isOut)
  t.same(problemsIn(tables), [])
  await environment.close()
  await keeper.close()
})

/** What is wrong with an index. Owners of made-up blocks have keys of other addresses. */
function problemsIn(tables: ReturnType<typeof openIndexTables>): string[] {
  return checkIndex(tables).problems.filter((problem) => !problem.startsWith("the owner's key"))
}

t.test('a damaged segment is mended before it is merged, and all others are merged', async (t) => {
  const path = scratch('damaged-merge')
  const flush = { rows: 20, forkDepth: 0, merges: { segmentsAlike: 3, levelMax: 1 } }
  const options = { path, touchEveryMs: 0, flush }
  const chain = new Chain({ items: 200, itemsPerBundle: 19, bundlesPerBlock: 1, seed: 4 })
  const blocks = [...chain.blocks()]
  const reading = openCatalogTables(path).environment
  const tables = openIndexTables(reading)
  /** One segment for each block. */
  const give = async (keeper: CatalogKeeper, some: typeof blocks): Promise<void> => {
    for (const { block, transactions, bundles } of some) {
      await keeper.handle(blockMessage(block, transactions))
      for (const { rootId, items } of bundles) await keeper.handle(itemsMessage(rootId, items))
      const isOut = (): boolean => {
        reading.refresh()
        return tables.sets.counts().rows < 20 && tables.sets.state.frozen === undefined
      }
      t.ok(await eventually('rows leave the tables', isOut))
    }
  }
  const first = new CatalogKeeper(options, new Generations(), systemClock, quietLog)
  await give(first, blocks.slice(0, 2))
  await first.close()
  const [victim] = await listedIn(path)
  t.equal(victim?.level, 0)
  const { rows: start } = tables.segments.all()[0]?.segment.footer ?? { rows: 0 }
  const file = openSync(join(path, 'segments', `segment-${victim?.number}`), 'r+')
  writeSync(file, Buffer.from('overwritten'), 0, 11, start + 40)
  closeSync(file)

  const generations = new Generations()
  const keeper = new CatalogKeeper(options, generations, systemClock, quietLog)
  await give(keeper, blocks.slice(2))
  const isMerged = (): boolean => {
    reading.refresh()
    return decodeSegmentList(segmentLedger(tables).read()).segments.some(({ level }) => level === 1)
  }
  t.ok(await eventually('a merged segment', isMerged))
  t.ok(generations.isDamaged)
  const isMended = (): boolean => {
    reading.refresh()
    const { segments } = decodeSegmentList(segmentLedger(tables).read())
    return segments.every(({ number }) => number !== victim?.number)
  }
  t.ok(await eventually('what can be read of it is written anew', isMended))
  await keeper.close()
  reading.refresh()
  t.same(problemsIn(tables), [], 'nothing damaged was taken over')
  await reading.close()
})
