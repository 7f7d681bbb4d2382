import { randomBytes } from 'node:crypto'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { CatalogKeeper } from '../../src/catalog/catalog-keeper.js'
import { Generations } from '../../src/catalog/generations.js'
import { type JudgedItem, packJudged } from '../../src/catalog/judged-items.js'
import { LmdbCatalog } from '../../src/catalog/reader.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { fc } from '../property.js'
import { scratch } from '../scratch.js'
import { someId } from '../source/rig.js'

function house() {
  const path = scratch('judged')
  const generations = new Generations()
  const keeper = new CatalogKeeper({ path, touchEveryMs: 0 }, generations, systemClock)
  const catalog = new LmdbCatalog(path, generations)
  const close = async (): Promise<void> => {
    await catalog.close()
    await keeper.close()
  }
  const bundle = async (): Promise<Buffer> => {
    const digest = randomBytes(32)
    await keeper.handle({ kind: 'kept', digest, sizeBytes: 10_000_000 })
    return digest
  }
  const tell = (bundle: Uint8Array, items: readonly JudgedItem[]) =>
    keeper.handle({ kind: 'judged', bundle, items: packJudged(bundle, items) })
  return { path, keeper, catalog, close, bundle, tell }
}

function judgedAt(rootItemOffset: number): JudgedItem {
  return {
    id: someId(),
    place: { rootItemOffset, itemSize: 500, headerSize: 200 },
    digest: randomBytes(32),
  }
}

t.test('each judged item is found at its place, in whatever order they came', async (t) => {
  const { catalog, close, bundle, tell } = house()
  t.teardown(close)
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.uniqueArray(fc.nat(5_000_000), { maxLength: 40 }), { maxLength: 5 }),
      async (batches) => {
        const digest = await bundle()
        const model = new Map<number, JudgedItem>()
        for (const batch of batches) {
          const items = batch.map(judgedAt)
          for (const one of items) model.set(one.place.rootItemOffset, one)
          await tell(digest, items)
        }
        for (const { id, place, digest: wanted } of model.values()) {
          const found = catalog.judged(digest, id, place)
          if (found === undefined || Buffer.compare(found, wanted) !== 0) return false
          for (const other of [
            { ...place, rootItemOffset: place.rootItemOffset + 0.5 },
            { ...place, itemSize: 499 },
            { ...place, headerSize: 201 },
          ])
            if (catalog.judged(digest, id, other) !== undefined) return false
          if (catalog.judged(digest, someId(), place) !== undefined) return false
          if (catalog.judged(randomBytes(32), id, place) !== undefined) return false
        }
        return true
      },
    ),
    { numRuns: 30 },
  )
})

t.test('with the bundle they go, and of a bundle that is not here nothing is noted', async (t) => {
  const { path, keeper, catalog, close, bundle, tell } = house()
  t.teardown(close)
  const [first, second] = [await bundle(), await bundle()]
  const items = [judgedAt(0), judgedAt(300_000), judgedAt(9_000_000)]
  await tell(first, items)
  await tell(second, items)
  const gone = randomBytes(32)
  await tell(gone, items)
  for (const { id, place } of items) t.equal(catalog.judged(gone, id, place), undefined)
  await keeper.handle({ kind: 'dropped', digest: first })
  for (const { id, place, digest } of items) {
    t.equal(catalog.judged(first, id, place), undefined)
    t.same(Buffer.from(catalog.judged(second, id, place) ?? []), digest)
  }
  await keeper.handle({ kind: 'dropped', digest: second })
  const tables = openCatalogTables(path)
  t.equal(tables.judged.count(), 0)
  await tables.environment.close()
})

t.test('a record with any bit changed is none, and so is one of another bundle', async (t) => {
  const { path, catalog, close, bundle, tell } = house()
  t.teardown(close)
  const digest = await bundle()
  const item = judgedAt(1234)
  await tell(digest, [item])
  const tables = openCatalogTables(path)
  const [entry] = tables.judged.from(undefined, 1)
  if (entry === undefined) throw new Error('nothing was written')
  const found = (): boolean => {
    // Who changed the table is not the keeper: the reader is to look again.
    const fresh = new LmdbCatalog(path, new Generations())
    const verdict = fresh.judged(digest, item.id, item.place)
    void fresh.close()
    return verdict !== undefined
  }
  t.ok(found())
  for (let bit = 0; bit < entry.value.length * 8; bit += 1) {
    const spoilt = Buffer.from(entry.value)
    spoilt[bit >> 3] = (spoilt[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    tables.environment.write(() => tables.judged.put(entry.key, spoilt))
    if (found()) t.fail(`bit ${bit} may be changed`)
  }
  for (const length of [0, 1, 87, 89, 88 + 87]) {
    const cut = Buffer.concat([entry.value, entry.value]).subarray(0, length)
    tables.environment.write(() => tables.judged.put(entry.key, cut))
    t.equal(found(), length > 88, `${length} bytes`)
  }
  const other = await bundle()
  const moved = Buffer.concat([other, entry.key.subarray(32)])
  tables.environment.write(() => tables.judged.put(moved, entry.value))
  t.equal(catalog.judged(other, item.id, item.place), undefined)
  await tables.environment.close()
})
