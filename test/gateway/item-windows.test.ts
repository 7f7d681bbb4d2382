import { randomBytes } from 'node:crypto'
import { closeSync, openSync, writeSync } from 'node:fs'
import t from 'tap'
import { ethereumSigner } from '../../src/proof/sign.js'
import { eventually } from '../eventually.js'
import { sha256, someId } from '../source/rig.js'
import { withBlockList } from './block-list-stage.js'
import { bundled, isServed, itemOf } from './bundled.js'
import { stage } from './rig.js'

t.test('an item of a bundle in the store is served out of it, without a copy', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const items = [0, 1, 900, 5000, 60_000].map((size) => itemOf(randomBytes(size)))
  await bundled(on, items)
  for (let round = 0; round < 3; round += 1) for (const item of items) await isServed(t, on, item)
  t.same(on.requested, [], 'nobody was asked')
  t.same(on.rig.kept, [], 'nothing was kept')
  for (const { id, payload } of items) {
    t.equal(on.rig.catalog.blobSize(sha256(payload)), undefined, 'it has no file of its own')
    await eventually('the digest is known', () => on.rig.catalog.attributes(id)?.digest !== undefined)
    t.match(on.rig.catalog.attributes(id), { verified: true, trusted: true, height: 7 })
    if (payload.length < 10) continue
    const part = await on.ask(`/raw/${id}`, { headers: { range: 'bytes=3-6' } })
    t.equal(part.status, 206)
    t.ok(part.body.equals(payload.subarray(3, 7)))
    const head = await on.ask(`/${id}`, { method: 'HEAD' })
    t.equal(head.headers['content-length'], String(payload.length))
    const same = await on.ask(`/${id}`, { headers: { 'if-none-match': head.headers.etag ?? '' } })
    t.equal(same.status, 304)
  }
})

t.test('large items, and those whose signatures take long to check, are judged elsewhere', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const ethereum = ethereumSigner(randomBytes(32))
  const items = [
    itemOf(randomBytes(3_000_000)),
    itemOf(randomBytes(2000), ethereum),
    itemOf(Buffer.alloc(0), ethereum),
    itemOf(randomBytes(500)),
  ]
  await bundled(on, items)
  for (let round = 0; round < 2; round += 1) for (const item of items) await isServed(t, on, item)
  t.same(on.requested, [])
  t.same(on.rig.kept, [])
})

t.test('what is not what its owner signed is not served out of a bundle', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const large = itemOf(randomBytes(200_000))
  const items = [itemOf(randomBytes(3000)), itemOf(randomBytes(3000)), large, itemOf(randomBytes(100))]
  for (const [at, { bytes }] of items.entries()) if (at < 3) bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
  await bundled(on, items)
  for (const { id, payload } of items.slice(0, 3)) {
    t.equal((await on.ask(`/${id}`)).status, 404, 'nobody else has it')
    on.has.set(id, { body: payload, contentType: 'text/html' })
    t.ok((await on.ask(`/${id}`)).body.equals(payload), 'another source is asked')
  }
  const last = items.at(-1)
  if (last !== undefined) await isServed(t, on, last)
})

t.test('a wrong place leads to nothing', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const items = [itemOf(randomBytes(3000)), itemOf(randomBytes(3000))]
  const { rootId } = await bundled(on, items)
  const [first, second] = items
  const place = on.rig.catalog.attributes(second?.id ?? someId())?.place
  if (first === undefined || place === undefined) throw new Error('no place')
  const wrong = [
    { id: someId(), size: 3000, place },
    { id: someId(), size: 2999, place },
    { id: first.id, size: 3000, place },
    { id: someId(), size: 3000, place: { ...place, rootItemOffset: 10 ** 9 } },
    { id: someId(), size: 3000, place: { ...place, rootId: someId() } },
    { id: rootId, size: 3000, place },
  ].map((one) => ({ ...one, verified: false, trusted: false }))
  for (const one of wrong.slice(0, 5)) {
    await on.rig.keeper.ask({ kind: 'learn', attributes: [one] })
    t.equal((await on.ask(`/${one.id}`)).status, 404)
  }
})

t.test('an item that gets another place in the same bundle is judged there', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  for (const size of [3000, 90_000]) {
    const [item, other] = [itemOf(randomBytes(size)), itemOf(randomBytes(size))]
    await bundled(on, [item, other])
    await isServed(t, on, item)
    await eventually('the digest is known', () => on.rig.catalog.attributes(item.id)?.digest !== undefined)
    await isServed(t, on, item)
    const known = on.rig.catalog.attributes(item.id)
    const right = known?.place
    const place = on.rig.catalog.attributes(other.id)?.place
    if (known === undefined || right === undefined || place === undefined) throw new Error('no place')
    await on.rig.keeper.ask({ kind: 'learn', attributes: [{ ...known, place }] })
    await isServed(t, on, item)
    t.same(on.rig.catalog.attributes(item.id)?.place, right, 'what was only listed replaces nothing')
    const signed = { ...place, isSigned: true } as const
    await on.rig.keeper.ask({ kind: 'learn', attributes: [{ ...known, place: signed }] })
    t.equal((await on.ask(`/${item.id}`)).status, 404, 'the bytes of another item are not served')
    t.equal((await on.ask(`/${item.id}`)).status, 404)
    await on.rig.keeper.ask({ kind: 'learn', attributes: [{ ...known, place: right }] })
    await isServed(t, on, item)
    await isServed(t, on, other)
  }
})

t.test('an item is verified as soon as its bundle is, also where it was served before', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const ethereum = ethereumSigner(randomBytes(32))
  const items = [itemOf(randomBytes(3000)), itemOf(randomBytes(90_000)), itemOf(randomBytes(2000), ethereum)]
  const { rootId } = await bundled(on, items, { verified: false })
  for (let round = 0; round < 2; round += 1) {
    for (const { id, payload } of items) {
      const answer = await on.ask(`/${id}`)
      t.ok(answer.body.equals(payload))
      t.equal(answer.headers['x-gateway-verified'], 'false')
      t.equal(answer.headers['x-gateway-trusted'], 'true')
      await eventually('the digest is known', () => on.rig.catalog.attributes(id)?.digest !== undefined)
    }
  }
  const root = on.rig.catalog.attributes(rootId)
  if (root === undefined) throw new Error('no bundle')
  await on.rig.keeper.ask({ kind: 'learn', attributes: [{ ...root, verified: true }] })
  for (let round = 0; round < 2; round += 1) for (const item of items) await isServed(t, on, item)
  t.same(on.requested, [])
})

t.test('a bundle that nobody vouches for, or that is damaged, serves nothing', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const [strange, damaged] = [itemOf(randomBytes(3000)), itemOf(randomBytes(3000))]
  await bundled(on, [strange], { verified: false, trusted: false })
  t.equal((await on.ask(`/${strange.id}`)).status, 404)
  const { path, digest } = await bundled(on, [itemOf(randomBytes(70_000)), damaged])
  const file = openSync(path, 'r+')
  writeSync(file, Buffer.from([1, 2, 3]), 0, 3, 30_000)
  closeSync(file)
  t.equal((await on.ask(`/${damaged.id}`)).status, 404)
  t.equal(on.rig.catalog.blobSize(digest), undefined, 'the damaged bundle is dropped')
})

t.test('with its bundle an item leaves the store', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const item = itemOf(randomBytes(3000))
  const { digest } = await bundled(on, [item])
  await isServed(t, on, item)
  await on.rig.blobCache.drop(digest)
  await eventually('the block holds', async () => (await on.ask(`/${item.id}`)).status === 404)
  on.has.set(item.id, { body: item.payload, contentType: 'text/html' })
  t.ok((await on.ask(`/${item.id}`)).body.equals(item.payload), 'it is fetched')
})

t.test('what is blocked by its hash is blocked in its bundle too, from the first request on', async (t) => {
  const items = [itemOf(randomBytes(3000)), itemOf(randomBytes(3000)), itemOf(randomBytes(90_000))]
  const [open, ...blocked] = items
  const { on, keeper } = await withBlockList(t)
  for (const { payload } of blocked) {
    const subject = { kind: 'hash', key: sha256(payload).toString('base64url') } as const
    keeper.handle({ kind: 'block', subject, ground: { source: 'test', notes: '' }, by: 'test' })
  }
  await bundled(on, items)
  for (const { id } of blocked) t.equal((await on.ask(`/${id}`)).status, 451)
  if (open !== undefined) await isServed(t, on, open)
})
