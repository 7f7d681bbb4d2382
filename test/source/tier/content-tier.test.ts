import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { packJudged } from '../../../src/catalog/judged-items.js'
import { bundleCountSize, bundleEntrySize, encodeBundle } from '../../../src/format/bundle.js'
import type { Id } from '../../../src/format/id.js'
import { isRefusal, refuse } from '../../../src/format/refusal.js'
import type { TierState } from '../../../src/source/tier/tier-state.js'
import { contentOf } from '../../conformance/object-store.js'
import { conform } from '../../conformance/source.js'
import { MemoryObjects } from '../../engines/memory-objects.js'
import { eventually } from '../../eventually.js'
import { scratch } from '../../scratch.js'
import { sha256, someId } from '../rig.js'
import { bundleTags, item, type MadeItem } from '../weave.js'
import { type Machine, machine } from './machine.js'

const { signal } = new AbortController()
const type = { 'Content-Type': 'text/plain' }

/** A machine that has put these into the store. */
async function writer(
  t: Test,
  objects: MemoryObjects,
  items: readonly MadeItem[],
  more: Parameters<typeof machine>[1] = {},
): Promise<Machine> {
  const made = await machine(objects, more)
  t.teardown(() => made.close())
  const root = someId()
  for (const one of items) made.network.addItem(one, root)
  for (const { id } of items) await made.keep(id)
  await made.settled()
  return made
}

async function reader(t: Test, objects: MemoryObjects, followMs = 50): Promise<Machine> {
  const made = await machine(objects, { followMs })
  t.teardown(() => made.close())
  return made
}

const has = (machine: Machine, id: Id): boolean => machine.tier.knows(id)

const same = (one: unknown, other: Uint8Array): boolean => Buffer.isBuffer(one) && one.equals(other)

t.test('what one machine verified another one reads, small and large', async (t) => {
  const objects = new MemoryObjects()
  const small = item(randomBytes(5000), type)
  const empty = item(new Uint8Array(0), type)
  const large = item(randomBytes(300_000), type)
  const first = await writer(t, objects, [small, empty, large])
  const transaction = { id: someId(), payload: randomBytes(700) }
  first.network.addTransaction(transaction.id, transaction.payload)
  await first.keep(transaction.id)
  await first.settled()
  t.match(first.tier.state, { state: 'well', packed: 3, objects: 1 })
  const stored = objects.objects.get(`test/${large.id}`)
  const start = large.bytes.length - large.payload.length
  t.ok(stored?.bytes.equals(large.bytes), 'an item lies there with its header, as ar-io-node reads it')
  t.match(stored?.metadata, { 'payload-data-start': String(start), 'payload-content-type': 'text/plain' })

  const second = await reader(t, objects)
  await eventually('the packs are known', () => second.tier.state.packed === 3)
  for (const { id, payload } of [small, empty, large, transaction]) {
    t.ok(same(await second.read(id), payload), id)
    const known = await eventually('the second one knows the content', () =>
      second.rig.catalog.attributes(id),
    )
    t.equal(known.verified, false, 'the word of a store proves nothing')
    t.equal(known.trusted, false)
  }
  t.equal(second.rig.catalog.attributes(small.id)?.contentType, 'text/plain')
  t.strictSame(second.network.requested, [])
  t.ok(
    second.rig.kept.find(({ attributes }) => attributes.id === small.id)?.hints.rootId,
    'with its place, to be proven',
  )
  await conform(t, { source: second.tier.source, id: small.id, payload: small.payload, proven: false })
  await conform(t, { source: second.tier.source, id: large.id, payload: large.payload, proven: false })
})

t.test('a read, a window and a miss cost one request each', async (t) => {
  const objects = new MemoryObjects()
  const [small, large] = [item(randomBytes(500)), item(randomBytes(200_000))]
  // What looks for packs now and then would be counted, too.
  await writer(t, objects, [small, large], { followMs: 1e9 })
  const second = await reader(t, objects, 1e9)
  await eventually('the second one knows of one content', () => second.tier.state.packed === 1)
  const { source } = second.tier
  const wanted = { hints: {}, provenance: { hops: 0, via: [], forward: true }, avoid: new Set<string>() }
  const costs = async (more: object): Promise<number> => {
    const { get, head } = objects.calls
    const found = await source.open({ ...wanted, id: small.id, ...more }, signal)
    if (!isRefusal(found)) for await (const _ of found.body);
    return objects.calls.get + objects.calls.head - get - head
  }
  t.equal(await costs({}), 1)
  t.equal(await costs({ id: large.id }), 1)
  t.equal(await costs({ id: someId() }), 1)
  t.equal(await costs({ id: small.id, window: { start: 3, end: 5 } }), 1)
  t.equal(await costs({ id: large.id, window: { start: 3, end: 5 } }), 1)
  t.equal(await costs({ id: large.id, window: { start: 3, end: large.payload.length - 1 } }), 1)
})

t.test('other bytes under an id are never shown', async (t) => {
  const objects = new MemoryObjects()
  const items = [item(randomBytes(5000)), item(randomBytes(90_000)), item(randomBytes(300_000))]
  const first = await writer(t, objects, items)
  for (const [key, held] of objects.objects) {
    if (key.includes('/sluice/directory') || key.endsWith('json')) continue
    // The last byte of each object, and in the pack that of each item.
    const bytes = Buffer.from(held.bytes)
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
    objects.objects.set(key, { ...held, bytes })
  }
  const second = await reader(t, objects)
  await eventually('the second one knows of one content', () => second.tier.state.packed === 1)
  for (const { id, payload } of items) {
    const read = await second.read(id)
    t.ok(isRefusal(read) || read.length < payload.length, 'nobody gets all of it')
    t.equal(second.rig.catalog.attributes(id)?.digest, undefined, 'and nothing is kept')
  }
  // Who has verified it before asks the network.
  for (const { id, payload } of items) {
    await first.evict(id)
    const requested = first.network.requested.length
    let read = await first.read(id)
    // What is shown while it comes ends short of its last byte; the next reader gets it from elsewhere.
    if (!same(read, payload)) read = await first.read(id)
    t.ok(same(read, payload), 'the right bytes')
    t.equal(first.network.requested.length, requested + 1)
  }
})

for (const size of [2000, 90_000]) {
  const where = size < 50_000 ? 'that lies in a pack' : 'that is an object'
  t.test(`items of a stored bundle ${where} are read out of it`, async (t) => {
    const objects = new MemoryObjects()
    const items = [item(randomBytes(300), type), item(randomBytes(size), type), item(new Uint8Array(0))]
    const bundle = { id: someId(), payload: Buffer.from(encodeBundle(items)) }
    const first = await writer(t, objects, [item(randomBytes(10))])
    first.network.addTransaction(bundle.id, bundle.payload, bundleTags)
    const known = await first.keep(bundle.id)
    let at = bundleCountSize + items.length * bundleEntrySize
    const judged = items.map(({ id, bytes, payload }) => {
      const place = { rootItemOffset: at, itemSize: bytes.length, headerSize: bytes.length - payload.length }
      at += bytes.length
      return { id, place, digest: sha256(payload) }
    })
    // It is opened some time after it was stored.
    await first.settled()
    const digest = known.digest ?? Buffer.alloc(0)
    await first.rig.keeper.ask({ kind: 'judged', bundle: digest, items: packJudged(digest, judged) })
    const second = await reader(t, objects)
    const before = objects.calls.put
    await eventually('the items are listed', () =>
      [items[0], items[2]].every((one) => one && has(second, one.id)),
    )
    t.ok(objects.calls.put - before <= 2, 'their bytes are not put once more')
    for (const { id, payload } of items) t.ok(same(await second.read(id), payload), 'read out of the bundle')
    t.equal(
      (
        await eventually('the judged item is known', () =>
          second.rig.catalog.attributes(judged[1]?.id ?? bundle.id),
        )
      ).contentType,
      'text/plain',
    )
    t.match(second.rig.kept.find(({ attributes }) => attributes.id === judged[1]?.id)?.hints, {
      rootId: bundle.id,
    })
    t.strictSame(second.network.requested, [])
    const [, one] = items
    if (one !== undefined) await conform(t, { source: second.tier.source, ...one, proven: false })
  })
}

t.test("a stranger's item under another id is not taken for it", async (t) => {
  const objects = new MemoryObjects()
  const [right, wrong] = [item(randomBytes(80_000)), item(randomBytes(80_000))]
  const made = await reader(t, objects)
  const start = wrong.bytes.length - wrong.payload.length
  const metadata = { 'payload-data-start': String(start) }
  await objects.put(`test/${right.id}`, contentOf(wrong.bytes, { metadata }))
  t.match(await made.read(right.id), { refused: 'forged' })
})

t.test('objects that ar-io-node would read', async (t) => {
  const objects = new MemoryObjects()
  const made = await reader(t, objects)
  const plain = { id: someId(), payload: randomBytes(1000) }
  await objects.put(`test/${plain.id}`, contentOf(plain.payload, { contentType: 'image/png' }))
  const whole = item(randomBytes(2000), { 'Content-Type': 'text/css' })
  const metadata = {
    'payload-data-start': String(whole.bytes.length - whole.payload.length),
    'payload-content-type': 'text/css',
  }
  await objects.put(`test/${whole.id}`, contentOf(whole.bytes, { metadata }))
  const beyond = someId()
  await objects.put(
    `test/${beyond}`,
    contentOf(Buffer.from('abc'), { metadata: { 'payload-data-start': '4' } }),
  )
  t.ok(same(await made.read(plain.id), plain.payload))
  t.equal(
    (await eventually('the type is known', () => made.rig.catalog.attributes(plain.id))).contentType,
    'image/png',
  )
  t.ok(same(await made.read(whole.id), whole.payload))
  t.match(await made.read(beyond), { refused: 'upstream' })
})

t.test('what waits outlives the process, and a store that fails', async (t) => {
  const objects = new MemoryObjects()
  const path = scratch('tier-restart')
  const items = Array.from({ length: 20 }, (_, index) => item(randomBytes(index % 4 === 0 ? 60_000 : 900)))
  const root = someId()
  const first = await machine(objects, { path })
  objects.fails = (operation) => (operation === 'put' ? refuse('upstream', 'upstream', 'no') : undefined)
  for (const one of items) first.network.addItem(one, root)
  for (const { id } of items) await first.keep(id)
  await eventually('content was put into the store', () => first.meters.total('content_store_puts_total') > 0)
  t.equal(objects.objects.size, 1, 'the marker alone')
  await first.close()
  objects.fails = () => undefined
  const again = await machine(objects, { path })
  t.teardown(() => again.close())
  await again.settled()
  t.match(again.tier.state, { packed: 15, objects: 5 })
})

t.test('machines that write at the same time leave no number out', async (t) => {
  const objects = new MemoryObjects()
  const made = await Promise.all([1, 2, 3].map(() => machine(objects)))
  t.teardown(() => Promise.all(made.map((one) => one.close())))
  const root = someId()
  await Promise.all(
    made.map(async (one) => {
      for (let turn = 0; turn < 3; turn += 1) {
        const few = Array.from({ length: 5 }, () => item(randomBytes(400)))
        for (const each of few) one.network.addItem(each, root)
        for (const { id } of few) await one.keep(id)
        await one.settled()
      }
    }),
  )
  for (const one of made)
    await eventually('each knows of all 45 contents', () => one.tier.state.packed === 45)
  const numbers = [...objects.objects.keys()].filter((key) => key.includes('/directory/')).sort()
  t.equal(Number(numbers.at(-1)?.slice(-10)), numbers.length)
})

t.test('a store that went back to an older state is filled again', async (t) => {
  const objects = new MemoryObjects()
  const [early, late, last] = [item(randomBytes(700)), item(randomBytes(800)), item(randomBytes(900))]
  const first = await writer(t, objects, [early])
  const backup = new Map(objects.objects)
  first.network.addItem(late, someId())
  await first.keep(late.id)
  await first.settled()
  objects.objects.clear()
  for (const [key, held] of backup) objects.objects.set(key, held)
  first.network.addItem(last, someId())
  await first.keep(last.id)
  await eventually(
    'all three are there again',
    () => first.tier.state.packed === 3 && first.tier.state.waiting === 0,
    () => first.tier.state,
  )
  const second = await reader(t, objects)
  for (const { id, payload } of [early, late, last]) {
    await eventually('the second one knows of three contents', () => second.tier.state.packed === 3)
    t.ok(same(await second.read(id), payload))
  }
})

t.test("another network's bucket, and one that lets numbers be taken twice, are not used", async (t) => {
  const foreign = new MemoryObjects()
  const devnet = await reader(t, foreign)
  t.equal(devnet.tier.state.state, 'well')
  const other = await machine(foreign, { network: 'mainnet' })
  t.teardown(() => other.close())
  t.equal(other.tier.state.state, 'other network')
  t.match(await other.tier.walk('push'), { refused: 'unknown' })

  class Overwriting extends MemoryObjects {
    override put(...[key, content]: Parameters<MemoryObjects['put']>) {
      return super.put(key, { ...content, isNew: false })
    }
  }
  const careless = await reader(t, new Overwriting())
  t.equal(careless.tier.state.state, 'no conditional writes')
})

t.test('a store that may only be read is read', async (t) => {
  const objects = new MemoryObjects()
  const small = item(randomBytes(900))
  await writer(t, objects, [small])
  const denied = { ...refuse('upstream', 'upstream', 'denied'), storeFault: 'denied' as const }
  objects.fails = (operation) => (operation === 'put' ? denied : undefined)
  const second = await reader(t, objects)
  t.equal(second.tier.state.state, 'read only')
  await eventually('the second one knows of one content', () => second.tier.state.packed === 1)
  t.ok(same(await second.read(small.id), small.payload))
  t.match(await second.tier.walk('push'), { refused: 'busy' })
})

t.test('a store that is silent holds up nobody', async (t) => {
  const objects = new MemoryObjects()
  const made = await machine(objects, { hedgeMs: 50 })
  t.teardown(() => made.close())
  const one = item(randomBytes(900))
  made.network.addItem(one, someId())
  const get = objects.get.bind(objects)
  let speak = (): void => undefined
  const silence = new Promise<void>((resolve) => {
    speak = resolve
  })
  objects.get = async (...words) => {
    await silence
    return get(...words)
  }
  t.ok(same(await made.read(one.id), one.payload), 'the network gets the request, too')
  speak()
})

t.test('a push ends although a pack is not full', async (t) => {
  const objects = new MemoryObjects()
  const made = await machine(objects, { gatherMs: 1e9 })
  t.teardown(() => made.close())
  const items = [item(randomBytes(700)), item(randomBytes(800))]
  for (const one of items) made.network.addItem(one, someId())
  for (const { id } of items) await made.keep(id)
  await eventually('all contents are on disk', () => made.rig.catalog.usage().blobs === items.length)
  made.tier.walk('push')
  await eventually('the push is over', () => made.tier.state.walk?.state === 'over')
  t.match(made.tier.state, { packed: 2, waiting: 0 })
})

t.test('all content is pushed, and pulled onto an empty disk', async (t) => {
  const objects = new MemoryObjects()
  const items = Array.from({ length: 30 }, (_, index) => item(randomBytes(index % 10 === 0 ? 60_000 : 700)))
  const first = await machine(objects)
  t.teardown(() => first.close())
  const root = someId()
  for (const one of items) first.network.addItem(one, root)
  for (const { id } of items) await first.read(id)
  await eventually('all contents are on disk', () => first.rig.catalog.usage().blobs === items.length)
  first.tier.walk('push')
  await eventually(
    'the push is over',
    () => first.tier.state.walk?.state === 'over',
    () => first.tier.state,
  )
  t.match(first.tier.state, { waiting: 0, packed: 27, objects: 3, walk: { seen: 30, moved: 30, failed: 0 } })
  first.tier.walk('push')
  await eventually('the walk is over', () => first.tier.state.walk?.state === 'over')
  t.match(first.tier.state.walk, { seen: 30, moved: 0, skipped: 30 })

  const second = await reader(t, objects)
  await eventually('the second one knows of all 27 contents', () => second.tier.state.packed === 27)
  second.tier.walk('pull')
  await eventually(
    'the pull is over',
    () => second.tier.state.walk?.state === 'over',
    () => second.tier.state,
  )
  t.match(second.tier.state.walk, { seen: 30, moved: 30, skipped: 0, failed: 0 })
  t.strictSame(second.network.requested, [])
  for (const { id, payload } of items) t.ok(same(await second.read(id), payload))
})

t.test('what is put has a bound, a day and in all, which an order of the operator may exceed', async (t) => {
  const objects = new MemoryObjects()
  const path = scratch('tier-budget')
  const large = [1, 2, 3, 4].map(() => item(randomBytes(60_000), type))
  const small = item(randomBytes(100), type)
  const dailyBytes = 100_000
  const bounded = { path, budget: { dailyBytes, maxBytes: 240_000 } }
  const first = await machine(objects, bounded)
  for (const one of [...large, small]) first.network.addItem(one, someId())
  const stored = (): number =>
    [...objects.objects.values()].filter(({ bytes }) => bytes.length > 60_000).length
  for (const { id } of large.slice(0, 3)) await first.keep(id)
  const isFull = ({ state, objects }: TierState): boolean => state === 'daily limit' && objects === 2
  await eventually(
    'the daily bound',
    () => isFull(first.tier.state),
    () => first.tier.state,
  )
  t.equal(stored(), 2, 'one may exceed it')
  t.match(first.tier.state, { waiting: 1, objects: 2 })
  const there = new Map(objects.objects)
  await first.close()

  // A closed store in memory is empty.
  for (const [key, value] of there) objects.objects.set(key, value)
  const again = await machine(objects, bounded)
  t.teardown(() => again.close())
  await eventually('the daily bound after a restart', () => again.tier.state.state === 'daily limit')
  t.equal(stored(), 2)
  again.tier.walk('push')
  await eventually('what was ordered', () => again.tier.state.walk?.state === 'over')
  t.equal(stored(), 3)
  t.equal(again.tier.state.state, 'daily limit', 'what was ordered counts, too')
  for (const one of [...large, small]) again.network.addItem(one, someId())
  await again.keep(large[3]?.id ?? small.id)
  again.tier.walk('push')
  await eventually(
    'all that may be put',
    () => stored() === 4,
    () => ({ ...again.tier.state, stored: stored() }),
  )
  await again.keep(small.id)
  again.tier.walk('push')
  await eventually('the bound in all', () => again.tier.state.state === 'size limit')
  t.notOk(has(again, small.id), 'no order exceeds it')
})
