import { fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { type Clock, systemClock } from '../../src/actor/clock.js'
import { addressOf } from '../../src/actor/mailbox-address.js'
import { startThread } from '../../src/actor/thread.js'
import { CatalogKeeper } from '../../src/catalog/catalog-keeper.js'
import type { CatalogReply, CatalogRequest } from '../../src/catalog/catalog-messages.js'
import type { CatalogThread } from '../../src/catalog/catalog-thread.js'
import { Generations, generationBytes } from '../../src/catalog/generations.js'
import { LmdbCatalog } from '../../src/catalog/reader.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import { type Id, idBytes, idOfBytes } from '../../src/format/id.js'
import type { Table } from '../../src/store/lmdb.js'
import { scratch } from '../scratch.js'

const someId = (): Id => idOfBytes(randomBytes(32))
const folder = async (): Promise<string> => scratch('catalog')

async function house(clock: Clock = systemClock, touchEveryMs = 0) {
  const path = await folder()
  const generations = new Generations()
  const keeper = new CatalogKeeper({ path, touchEveryMs }, generations, clock)
  const catalog = new LmdbCatalog(path, generations)
  return { path, generations, keeper, catalog }
}

t.test('what was learned is read after the reply, and its generation moved', async (t) => {
  const { keeper, catalog } = await house()
  const id = someId()
  t.equal(catalog.attributes(id), undefined)
  const before = catalog.generation(id)
  const reply = await keeper.handle({
    kind: 'learn',
    attributes: [{ id, size: 5, verified: false, trusted: true, contentType: 'text/plain' }],
  })
  t.same(reply, { kind: 'committed' })
  t.not(catalog.generation(id), before)
  t.same(catalog.attributes(id), { id, size: 5, verified: false, trusted: true, contentType: 'text/plain' })
  await catalog.close()
  await keeper.close()
})

t.test('damaged records count as none, and stop nothing', async (t) => {
  const { path, keeper, catalog } = await house()
  const id = someId()
  const digest = randomBytes(32)
  const learned = { id, size: 5, verified: true, trusted: true, digest }
  await keeper.handle({ kind: 'kept', digest, sizeBytes: 5 })
  await keeper.handle({ kind: 'learn', attributes: [learned] })
  const tables = openCatalogTables(path)
  const spoil = (table: Table, key: Uint8Array, at: number): void => {
    const record = Buffer.from(table.get(key) ?? [])
    record[at] = (record[at] ?? 0) ^ 0x40
    tables.environment.write(() => table.put(key, record))
  }
  for (const kind of ['distrust', 'learn'] as const) {
    spoil(tables.attributes, idBytes(id), 1)
    tables.environment.refresh()
    await keeper.handle({ kind: 'touched', digests: [digest] })
    t.equal(catalog.attributes(id), undefined)
    if (kind === 'distrust') await keeper.handle({ kind, id })
    await keeper.handle({ kind: 'learn', attributes: [learned] })
    t.same(catalog.attributes(id), learned)
  }
  const [first] = catalog.leastTouched(1)
  spoil(tables.blobs, digest, 23)
  await keeper.handle({ kind: 'touched', digests: [digest] })
  await keeper.handle({ kind: 'dropped', digest })
  if (first === undefined) throw new Error('no use was counted')
  for (const { digest: left, touchedMs } of catalog.leastTouched(10))
    await keeper.handle({ kind: 'dropped', digest: left, touchedMs })
  t.same(catalog.leastTouched(10), [], 'eviction comes to its end')
  t.equal(catalog.blobSize(digest), undefined)
  await tables.environment.close()
  await catalog.close()
  await keeper.close()
})

t.test('all messages of one turn are one commit', async (t) => {
  const { keeper, catalog, generations } = await house()
  const ids = Array.from({ length: 100 }, someId)
  await Promise.all(
    ids.map((id) =>
      keeper.handle({ kind: 'learn', attributes: [{ id, size: 1, verified: false, trusted: false }] }),
    ),
  )
  t.equal(generations.commits, 1)
  t.ok(ids.every((id) => catalog.attributes(id)?.size === 1))
  await catalog.close()
  await keeper.close()
})

t.test('blobs are counted, ordered by use, and forgotten when dropped', async (t) => {
  let now = 1_000_000
  const clock: Clock = { ...systemClock, now: () => now }
  const { keeper, catalog } = await house(clock, 1000)
  const [one, two] = [randomBytes(32), randomBytes(32)]
  await keeper.handle({ kind: 'kept', digest: one, sizeBytes: 10 })
  now += 5000
  await keeper.handle({ kind: 'kept', digest: two, sizeBytes: 20 })
  await keeper.handle({ kind: 'kept', digest: two, sizeBytes: 20 })
  t.equal(catalog.blobBytes(), 30)
  t.same(
    catalog.leastTouched(10).map(({ digest }) => digest),
    [one, two],
  )
  now += 5000
  await keeper.handle({ kind: 'touched', digests: [one, randomBytes(32)] })
  t.same(
    catalog.leastTouched(10).map(({ digest }) => digest),
    [two, one],
  )
  now += 500
  await keeper.handle({ kind: 'touched', digests: [one] })
  t.equal(catalog.blob(one)?.touchedMs, 1_010_000, 'a touch soon after another costs no write')
  await keeper.handle({ kind: 'dropped', digest: one })
  await keeper.handle({ kind: 'dropped', digest: one })
  t.equal(catalog.blobBytes(), 20)
  t.equal(catalog.blobSize(one), undefined)
  t.equal(catalog.leastTouched(10).length, 1)
  await catalog.close()
  await keeper.close()
})

t.test('a blob is found through an id that has it, whatever comes later', async (t) => {
  let now = 1_000_000
  const { keeper, catalog } = await house({ ...systemClock, now: () => now })
  const [one, two] = [someId(), someId()]
  const [digest, other] = [randomBytes(32), randomBytes(32)]
  const learn = (id: Id, stated: Uint8Array): Promise<unknown> =>
    keeper.handle({
      kind: 'learn',
      attributes: [{ id, size: 9, verified: false, trusted: true, digest: stated }],
    })
  t.equal(catalog.holder(digest), undefined)
  await learn(one, digest)
  t.equal(catalog.holder(digest), undefined, 'it is not here')
  await keeper.handle({ kind: 'kept', digest, sizeBytes: 9 })
  await learn(one, digest)
  t.equal(catalog.holder(digest), one)
  await learn(two, digest)
  t.equal(catalog.holder(digest), one, 'the first one stays')
  await learn(one, other)
  await learn(two, digest)
  t.equal(catalog.holder(digest), two, 'until it means other bytes')
  now += 5000
  await keeper.handle({ kind: 'touched', digests: [digest] })
  t.equal(catalog.holder(digest), two)
  await keeper.handle({ kind: 'dropped', digest })
  t.equal(catalog.holder(digest), undefined)
  await catalog.close()
  await keeper.close()
})

t.test('ids with something left to prove are listed until it is proven or given up', async (t) => {
  const { keeper, catalog } = await house()
  const id = someId()
  const digest = randomBytes(32)
  const learn = (more: object): Promise<unknown> =>
    keeper.handle({
      kind: 'learn',
      attributes: [{ id, size: 1, verified: false, trusted: true, digest, ...more }],
    })
  await learn({})
  t.same(catalog.unsettled(undefined, 10), [id])
  t.same(catalog.unsettled(id, 10), [])
  await learn({ verified: true })
  t.same(catalog.unsettled(undefined, 10), [id], 'the height is still unknown')
  await learn({ verified: true, height: 12 })
  t.same(catalog.unsettled(undefined, 10), [])
  const other = someId()
  await keeper.handle({
    kind: 'learn',
    attributes: [{ id: other, size: 1, verified: false, trusted: true, digest }],
  })
  await keeper.handle({ kind: 'resigned', id: other })
  t.same(catalog.unsettled(undefined, 10), [])
  await keeper.handle({ kind: 'distrust', id: other })
  t.equal(catalog.attributes(other), undefined)
  await catalog.close()
  await keeper.close()
})

t.test('forgotten items mean no bytes any more, unless they are proven or in a block', async (t) => {
  const { keeper, catalog } = await house()
  const [pending, proven, mined] = [someId(), someId(), someId()]
  const digest = randomBytes(32)
  const about = { size: 1, verified: false, trusted: false, digest }
  await keeper.handle({ kind: 'kept', digest, sizeBytes: 1 })
  await keeper.handle({
    kind: 'learn',
    attributes: [
      { ...about, id: pending },
      { ...about, id: proven, verified: true },
      { ...about, id: mined, height: 5 },
    ],
  })
  const generation = catalog.generation(pending)
  await keeper.handle({ kind: 'forget-items', ids: [pending, proven, mined, someId()] })
  t.equal(catalog.attributes(pending), undefined)
  t.not(catalog.generation(pending), generation, 'every thread reads it anew')
  t.match(catalog.attributes(proven), { verified: true })
  t.match(catalog.attributes(mined), { height: 5 })
  t.notOk(catalog.unsettled(undefined, 10).includes(pending))
  t.equal(catalog.blobSize(digest), 1, 'others may have the same bytes')
  await catalog.close()
  await keeper.close()
})

t.test('another thread reads what the keeper thread committed', async (t) => {
  const path = await folder()
  const data: CatalogThread = {
    keeper: { path, touchEveryMs: 0 },
    generations: new SharedArrayBuffer(generationBytes),
    logLevel: 'silent',
    isBeside: false,
  }
  const thread = await startThread('catalog', 'catalog', data)
  const keeper = addressOf<CatalogRequest, CatalogReply>(thread.connect(), 100)
  const catalog = new LmdbCatalog(path, new Generations(data.generations))
  for (let round = 0; round < 50; round += 1) {
    const id = someId()
    catalog.attributes(id)
    await keeper.ask({ kind: 'learn', attributes: [{ id, size: round, verified: false, trusted: false }] })
    t.equal(catalog.attributes(id)?.size, round)
  }
  await catalog.close()
  await thread.stop(60_000)
  t.equal(await thread.gone, 0)
})

t.test('a killed keeper leaves every answered change, and none in part', async (t) => {
  const path = await folder()
  const child = fork(fileURLToPath(new URL('./killed-keeper.js', import.meta.url)), [path], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  const ended = once(child, 'exit')
  const answered: { id: Id; digest: string }[] = []
  child.on('message', (word) => answered.push(word as { id: Id; digest: string }))
  while (answered.length < 300) await once(child, 'message')
  child.kill('SIGKILL')
  await ended
  const catalog = new LmdbCatalog(path, new Generations())
  for (const { id, digest } of answered) {
    const found = catalog.attributes(id)
    t.equal(Buffer.from(found?.digest ?? []).toString('hex'), digest)
    t.equal(catalog.blobSize(Buffer.from(digest, 'hex')), found?.size)
  }
  const blobs = catalog.leastTouched(1_000_000)
  const sum = blobs.reduce((bytes, { digest }) => bytes + (catalog.blobSize(digest) ?? Number.NaN), 0)
  t.equal(catalog.blobBytes(), sum, 'sums and tables agree')
  await catalog.close()
})
