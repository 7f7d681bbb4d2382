import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Clock } from '../../src/actor/clock.js'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { bundleCountSize, bundleEntrySize, encodeBundle } from '../../src/format/bundle.js'
import type { Id } from '../../src/format/id.js'
import { parseItemHeader } from '../../src/format/item.js'
import { isRefusal } from '../../src/format/refusal.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { cacheOrders } from '../../src/routes/admin/cache-orders.js'
import type { OrderAnswer } from '../../src/routes/admin/order.js'
import { Evictor } from '../../src/source/keeping/evictor.js'
import { Pins } from '../../src/source/keeping/pins.js'
import { inOrder } from '../../src/source/upstream/in-order.js'
import { type Rig, rig, sha256, someId } from '../source/rig.js'

const signer = ed25519Signer(randomBytes(32))

async function keep(house: Rig, bytes: Buffer): Promise<Buffer> {
  const digest = sha256(bytes)
  const draft = await house.store.draft()
  await draft.handle.write(bytes)
  await house.store.keep(draft, digest)
  await draft.handle.close()
  await house.keeper.ask({ kind: 'kept', digest, sizeBytes: bytes.length })
  return digest
}

/** A trusted bundle of three items on disk; the payload of the second one is damaged. */
async function scene(t: Test) {
  const path = t.testdir()
  const pins = new Pins(join(path, 'pins'))
  const house = await rig({ source: inOrder('none', []), path, fetcher: { pins } })
  t.teardown(async () => {
    await house.close()
    await pins.close()
  })
  const items = [400, 900, 70_000].map((size) =>
    Buffer.from(signItem(signer, { anchor: randomBytes(32) }, randomBytes(size))),
  )
  const headers = items.map((item) => {
    const header = parseItemHeader(item)
    if (header === 'more' || isRefusal(header)) throw new Error('an item of our own does not parse')
    return header
  })
  const damaged = items[1]
  damaged?.writeUInt8((damaged.at(-1) ?? 0) ^ 1, damaged.length - 1)
  const bundle = Buffer.from(
    encodeBundle(headers.map(({ id }, at) => ({ id, bytes: items[at] ?? Buffer.alloc(0) }))),
  )
  const digest = await keep(house, bundle)
  const rootId = someId()
  const root = { id: rootId, size: bundle.length, verified: true, trusted: true, digest }
  await house.keeper.ask({ kind: 'learn', attributes: [root] })
  let at = bundleCountSize + items.length * bundleEntrySize
  const ids: Id[] = []
  for (const [index, { id, headerSize }] of headers.entries()) {
    const itemSize = items[index]?.length ?? 0
    const offsets = { rootItemOffset: at, parentItemOffset: at, itemSize, headerSize }
    const place = { rootId, parentId: rootId, path: [rootId], ...offsets }
    const known = { id, size: itemSize - headerSize, verified: false, trusted: false, place }
    await house.keeper.ask({ kind: 'learn', attributes: [known] })
    ids.push(id)
    at += itemSize
  }
  const usage = () => house.catalog.usage()
  const orders = cacheOrders({ catalog: house.catalog, fetcher: house.edge().address, usage, maxBytes: 1 })
  const order = async (method: 'PUT' | 'DELETE', path: string, rest = ''): Promise<OrderAnswer> => {
    const found = orders.find((one) => one.method === method && one.path === path)
    if (found === undefined) throw new Error(`no order ${method} ${path}`)
    return found.act({ body: undefined, rest, query: new URLSearchParams(), by: 'test' })
  }
  const later: Clock = { ...systemClock, now: () => Date.now() + 120_000 }
  const options = { maxBytes: 0, everyMs: 1000, graceMs: 60_000, orphanMs: 1000 }
  const evict = () =>
    new Evictor(house.store, house.catalog, house.blobCache, silentLog, later, options, () => 0, pins).evict()
  return { house, pins, rootId, digest, ids, order, evict, path }
}

t.test('a pinned item keeps its bundle until no item of it is pinned', async (t) => {
  const { house, pins, rootId, digest, ids, order, evict, path } = await scene(t)
  const [small, damaged, large] = ids
  const other = await keep(house, randomBytes(50))
  t.match(await order('PUT', 'pins/', small), { status: 200, body: { pins: 1, bundle: rootId } })
  t.match(await order('PUT', 'pins/', small), { status: 200, body: { pins: 1 } }, 'twice is once')
  t.match(await order('PUT', 'pins/', large), { status: 200, body: { pins: 2, bundle: rootId } })
  t.match(await order('PUT', 'pins/', damaged), { status: 404 }, 'what is not the item is not there')
  t.match(await order('PUT', 'pins/', someId()), { status: 404 })
  t.equal(await evict(), 1)
  t.equal(house.catalog.blobSize(other), undefined, 'what is not pinned went')
  t.not(house.catalog.blobSize(digest), undefined, 'the bundle stays')
  t.match(await order('DELETE', 'pins/', small), { status: 200, body: { pins: 1 } })
  t.equal(await evict(), 0, 'the other item keeps it')
  t.ok(pins.has(digest))

  const again = new Pins(join(path, 'pins'))
  t.ok(again.has(digest), 'it outlives the process')
  await again.close()

  t.match(await order('DELETE', 'pins/', large), { status: 200, body: { pins: 0 } })
  t.notOk(pins.has(digest))
  t.equal(await evict(), 1)
  t.equal(house.catalog.blobSize(digest), undefined)
  t.match(await order('PUT', 'pins/', small), { status: 404 }, 'there is nothing to keep any more')
})

t.test('an item is evicted with its bundle, which the answer names', async (t) => {
  const { house, rootId, digest, ids, order } = await scene(t)
  t.match(await order('DELETE', 'cache/', ids[1]), { status: 404 })
  t.not(house.catalog.blobSize(digest), undefined)
  t.match(await order('DELETE', 'cache/', ids[0]), { status: 200, body: { bundle: rootId } })
  t.equal(house.catalog.blobSize(digest), undefined)
  t.match(await order('DELETE', 'cache/', ids[0]), { status: 404 })
  t.match(await order('DELETE', 'cache/', 'x'), { status: 400 })
})
