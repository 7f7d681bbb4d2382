import { randomBytes } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { type Clock, systemClock } from '../../../src/actor/clock.js'
import { silentLog } from '../../../src/actor/log.js'
import { type EvictionOptions, Evictor } from '../../../src/source/keeping/evictor.js'
import { Pins } from '../../../src/source/keeping/pins.js'
import { inOrder } from '../../../src/source/upstream/in-order.js'
import { blobPath } from '../../../src/store/blobs.js'
import { eventually } from '../../eventually.js'
import { type Rig, rig, sha256, someId } from '../rig.js'

/** A store with `count` blobs of 1,000 bytes, kept one after the other. */
async function filled(
  count: number,
  clock = systemClock,
  there?: Rig,
): Promise<{ house: Rig; digests: Buffer[] }> {
  const house = there ?? (await rig({ source: inOrder('none', []), clock }))
  const digests: Buffer[] = []
  for (let made = 0; made < count; made += 1) {
    const bytes = randomBytes(1000)
    const digest = sha256(bytes)
    const draft = await house.store.draft()
    await draft.handle.write(bytes)
    const attributes = { id: someId(), size: 1000, verified: false, trusted: true, digest }
    await house.blobCache.keep(draft, {
      attributes,
      digest,
      hints: {},
      clientHints: {},
      named: false,
      source: 'test',
    })
    await draft.handle.close()
    digests.push(digest)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  return { house, digests }
}

function evictor(house: Rig, more: Partial<EvictionOptions>, ahead = 0): Evictor {
  const options = { maxBytes: 10_000, everyMs: 1000, graceMs: 60_000, orphanMs: 1000, ...more }
  const clock: Clock = { ...systemClock, now: () => Date.now() + ahead }
  return new Evictor(house.store, house.catalog, house.blobCache, silentLog, clock, options)
}

t.test('the least recently used are removed first, down to the bound', async (t) => {
  const { house, digests } = await filled(10)
  await house.keeper.ask({ kind: 'touched', digests: [digests[0]!] })
  t.equal(await evictor(house, { maxBytes: 4500 }, 120_000).evict(), 6)
  t.equal(house.catalog.blobBytes(), 4000)
  const left = digests.filter((digest) => house.catalog.blobSize(digest) !== undefined)
  t.same(left, [digests[0], ...digests.slice(7)])
  await t.rejects(stat(blobPath(house.store.folder, digests[1]!)))
  t.equal((await stat(blobPath(house.store.folder, digests[0]!))).size, 1000)
  await house.close()
})

t.test('what is pinned stays, whatever room is needed, until it is let go', async (t) => {
  const { house, digests } = await filled(5)
  const pins = new Pins(join(house.path, 'pins'))
  t.equal(pins.set(digests[0]!, true), true)
  t.equal(pins.set(digests[3]!, true), true)
  const options = { maxBytes: 0, everyMs: 1000, graceMs: 60_000, orphanMs: 1000 }
  const later: Clock = { ...systemClock, now: () => Date.now() + 120_000 }
  const parts = [house.store, house.catalog, house.blobCache, silentLog, later, options] as const
  t.equal(await new Evictor(...parts, () => 0, pins).evict(), 3)
  const isHeld = (digest: Buffer): boolean => house.catalog.blobSize(digest) !== undefined
  t.same(digests.map(isHeld), [true, false, false, true, false])
  await pins.close()
  const again = new Pins(join(house.path, 'pins'))
  t.equal(again.count, 2, 'it outlives the process')
  t.equal(again.set(digests[0]!, false), true)
  t.same(
    digests.map((digest) => again.has(digest)),
    [false, false, false, true, false],
  )
  await again.close()
  await house.close()
})

t.test('blobs that are being read stay, also beyond the bound', async (t) => {
  const { house, digests } = await filled(5)
  t.equal(await evictor(house, { maxBytes: 0 }).evict(), 0, 'all were touched within the grace')
  t.ok(digests.every((digest) => house.catalog.blobSize(digest) === 1000))
  await house.close()
})

t.test('far beyond the bound nothing is spared but what came just now', async (t) => {
  const { house } = await filled(20)
  t.equal(await evictor(house, { maxBytes: 19_900 }, 5000).evict(), 0, 'hardly beyond it')
  t.equal(await evictor(house, { maxBytes: 10_000 }, 1000).evict(), 0, 'just now')
  t.equal(await evictor(house, { maxBytes: 10_000 }, 5000).evict(), 10)
  t.equal(house.catalog.blobBytes(), 10_000)
  await house.close()
})

t.test('the bound is looked at each second', async (t) => {
  const { house } = await filled(20)
  const over = evictor(house, { maxBytes: 10_000, everyMs: 3_600_000, graceMs: 0 })
  over.start()
  await eventually('the cache is within its bound', () => house.catalog.blobBytes() <= 10_000)
  t.equal(house.catalog.blobBytes(), 10_000)
  await over.stop()
  await house.close()
})

t.test('blobs unused for too long are removed although there is room', async (t) => {
  const { house } = await filled(3)
  t.equal(await evictor(house, { maxAgeSeconds: 600 }, 300_000).evict(), 0)
  t.equal(await evictor(house, { maxAgeSeconds: 600 }, 700_000).evict(), 3)
  await house.close()
})

t.test('files without a record are swept when they are old enough', async (t) => {
  const { house } = await filled(1)
  const bytes = randomBytes(10)
  const digest = sha256(bytes)
  const draft = await house.store.draft()
  await draft.handle.write(bytes)
  await house.store.keep(draft, digest)
  await draft.handle.close()
  const young = evictor(house, { orphanMs: 60_000 })
  for (let folder = 0; folder < 256; folder += 1) await young.turn()
  t.equal((await stat(blobPath(house.store.folder, digest))).size, 10)
  const old = evictor(house, { orphanMs: 60_000 }, 120_000)
  for (let folder = 0; folder < 256; folder += 1) await old.turn()
  await t.rejects(stat(blobPath(house.store.folder, digest)))
  t.equal(house.catalog.leastTouched(10).length, 1, 'what has a record stays')
  await house.close()
})

t.test('blobs go in the order of their use, also where the clock is set back meanwhile', async (t) => {
  let offMs = 0
  const clock: Clock = { ...systemClock, now: () => Date.now() + offMs }
  const { house, digests } = await filled(3, clock)
  offMs = -400 * 86_400_000
  const later = await filled(2, clock, house)
  await house.keeper.ask({ kind: 'touched', digests: [digests[0]!] })
  const order = house.catalog.leastTouched(9).map(({ digest }) => digest)
  t.same(order, [digests[1], digests[2], ...later.digests, digests[0]])
  const options = { maxBytes: 0, everyMs: 1000, graceMs: 0, orphanMs: 1000 }
  const turned = new Evictor(house.store, house.catalog, house.blobCache, silentLog, clock, options)
  t.ok((await turned.evict()) >= 4, 'none of them counts as used in a year to come')
  await house.close()
})
