import { randomBytes } from 'node:crypto'
import { closeSync, openSync, rmSync, truncateSync, writeSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import { parseItemHeader } from '../../src/format/item.js'
import { isRefusal, refuse } from '../../src/format/refusal.js'
import { tagOf } from '../../src/format/tag.js'
import { ethereumSigner, signItem } from '../../src/proof/sign.js'
import { eventually } from '../eventually.js'
import { withBlockList } from './block-list-stage.js'
import { bundled, ed25519, isServed, itemOf, opened } from './bundled.js'
import { contentOnly, stage } from './rig.js'

t.test('what was judged when its bundle was opened is not judged again', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const ethereum = ethereumSigner(randomBytes(32))
  const items = [
    itemOf(Buffer.alloc(0)),
    itemOf(randomBytes(3000)),
    itemOf(randomBytes(90_000)),
    itemOf(randomBytes(2000), ethereum),
  ]
  const { digest } = await bundled(on, items)
  await opened(on, digest, items)
  for (let round = 0; round < 2; round += 1) for (const item of items) await isServed(t, on, item)
  await pause(400)
  for (const { id } of items) t.equal(on.rig.catalog.attributes(id)?.digest, undefined, 'nobody had to tell')
})

t.test('items of a large bundle that was not compared yet are compared themselves', async (t) => {
  // After a start; nobody waits until so many bytes were hashed.
  const waiting: (() => void)[] = []
  const check = (): Promise<boolean> => new Promise((resolve) => waiting.push(() => resolve(true)))
  const transfers = {
    open: () => Promise.resolve(refuse('unknown', 'upstream', 'none')),
    check,
    ...contentOnly,
  }
  const on = await stage({ options: { checkWaitBytes: 50_000 }, parts: { transfers } })
  t.teardown(() => on.close())
  const items = [itemOf(Buffer.alloc(0)), itemOf(randomBytes(3000)), itemOf(randomBytes(50_000))]
  const [strange, damaged] = [itemOf(randomBytes(3000)), itemOf(randomBytes(3000))]
  const large = itemOf(randomBytes(90_000))
  const { digest, path } = await bundled(on, [...items, strange, damaged, large])
  await opened(on, digest, [...items, damaged, large])
  for (let round = 0; round < 2; round += 1) for (const item of items) await isServed(t, on, item)
  t.ok(waiting.length > 0, 'the bundle is being compared')
  t.equal((await on.ask(`/${strange.id}`)).status, 404, 'nobody has judged it')
  t.equal((await on.ask(`/${large.id}`)).status, 404, 'too large to be compared here')
  const at = (await readFile(path)).indexOf(damaged.payload)
  const file = openSync(path, 'r+')
  writeSync(file, Buffer.from([1, 2, 3]), 0, 3, at + 1000)
  closeSync(file)
  t.equal((await on.ask(`/${damaged.id}`)).status, 404, 'damaged')
})

t.test('a digest that somebody said before is not believed against the bytes', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const item = itemOf(randomBytes(3000))
  const { digest } = await bundled(on, [item])
  await opened(on, digest, [item])
  const known = on.rig.catalog.attributes(item.id)
  if (known === undefined) throw new Error('no item')
  await on.rig.keeper.ask({ kind: 'learn', attributes: [{ ...known, digest: randomBytes(32) }] })
  t.equal((await on.ask(`/${item.id}`)).status, 404, 'not these bytes, and nobody has others')
})

t.test('a damaged or cut bundle serves nothing that was judged in it', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  for (const harm of ['flip', 'cut', 'remove'] as const) {
    const items = [itemOf(randomBytes(70_000)), itemOf(randomBytes(3000))]
    const { digest, path } = await bundled(on, items)
    await opened(on, digest, items)
    if (harm === 'flip') {
      const file = openSync(path, 'r+')
      writeSync(file, Buffer.from([1, 2, 3]), 0, 3, 30_000)
      closeSync(file)
    } else if (harm === 'cut') truncateSync(path, 60_000)
    else rmSync(path)
    for (const { id } of items) t.equal((await on.ask(`/${id}`)).status, 404, harm)
  }
})

t.test('a bundle that is cut while it is sent ends the body short, and the program goes on', async (t) => {
  const on = await stage()
  // What had been looked at before the cut is found gone when it is sent. That is reported, and ends this one body.
  t.teardown(() =>
    on.close().catch((error: Error) => {
      if (!error.message.endsWith('has shrunk')) throw error
    }),
  )
  const items = [itemOf(randomBytes(24 * 2 ** 20)), itemOf(randomBytes(3000))]
  const { digest, path } = await bundled(on, items)
  await opened(on, digest, items)
  const [large, small] = items
  if (large === undefined || small === undefined) throw new Error('no items')
  const response = await fetch(`${on.url}/${large.id}`)
  const reader = response.body?.getReader()
  await reader?.read()
  truncateSync(path, 2 ** 20)
  let bytes = 0
  const read = async (): Promise<void> => {
    for (;;) {
      const piece = await reader?.read()
      if (piece === undefined || piece.done) return
      bytes += piece.value.length
    }
  }
  await t.rejects(read())
  t.ok(bytes < large.payload.length)
  await eventually('the block holds', async () => (await on.ask(`/${small.id}`)).status === 404)
})

t.test('a bundle that leaves the store while one of its items is sent does not break the body', async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const item = itemOf(randomBytes(24 * 2 ** 20))
  const { digest } = await bundled(on, [item])
  await opened(on, digest, [item])
  const [one, other] = await Promise.all([fetch(`${on.url}/${item.id}`), fetch(`${on.url}/${item.id}`)])
  await on.rig.blobCache.drop(digest)
  for (const response of [one, other])
    t.ok(Buffer.from(await response.arrayBuffer()).equals(item.payload), 'whole and right')
  await eventually('the item is found untrue', async () => (await on.ask(`/${item.id}`)).status === 404)
})

t.test(
  'items over each other, and items whose tags fill their header, are each served as signed',
  async (t) => {
    const on = await stage()
    t.teardown(() => on.close())
    const inner = itemOf(randomBytes(2000))
    const outer = itemOf(Buffer.concat([randomBytes(100), inner.bytes, randomBytes(50)]))
    const tags = Array.from({ length: 12 }, (_, at) => tagOf(`T${at}`, 'v'.repeat(300)))
    const huge = Buffer.from(signItem(ed25519, { anchor: randomBytes(32), tags }, randomBytes(10)))
    const header = parseItemHeader(huge)
    if (header === 'more' || isRefusal(header)) throw new Error('an item of our own does not parse')
    const { rootId } = await bundled(on, [outer])
    const place = on.rig.catalog.attributes(outer.id)?.place
    if (place === undefined) throw new Error('no place')
    // A place inside of another item: the bytes there are an item all the same, signed by its owner.
    const at = place.rootItemOffset + outer.headerSize + 100
    const within = { ...place, rootItemOffset: at, parentItemOffset: at }
    const itemSize = inner.bytes.length
    const known = { id: inner.id, size: 2000, verified: false, trusted: false }
    const claimed = { ...known, place: { ...within, itemSize, headerSize: inner.headerSize, rootId } }
    await on.rig.keeper.ask({ kind: 'learn', attributes: [claimed] })
    await isServed(t, on, inner)
    await isServed(t, on, outer)
    // And one that reaches out of its bundle.
    const out = { ...claimed.place, itemSize: itemSize + 10 ** 6 }
    await on.rig.keeper.ask({ kind: 'learn', attributes: [{ ...claimed, size: 2000 + 10 ** 6, place: out }] })
    t.equal((await on.ask(`/${inner.id}`)).status, 404)
    const payload = huge.subarray(header.headerSize)
    const full = { id: header.id, bytes: huge, payload, headerSize: header.headerSize }
    await bundled(on, [full])
    const answer = await on.ask(`/${header.id}`)
    t.equal(answer.status, 200)
    t.ok(answer.body.equals(payload))
  },
)

t.test('items of a blocked bundle are blocked', async (t) => {
  const { on, keeper } = await withBlockList(t)
  const items = [itemOf(randomBytes(3000)), itemOf(randomBytes(3000))]
  const { rootId, digest } = await bundled(on, items)
  await opened(on, digest, items)
  for (const item of items) await isServed(t, on, item)
  const subject = { kind: 'id', key: rootId } as const
  keeper.handle({ kind: 'block', subject, ground: { source: 'test', notes: '' }, by: 'test' })
  for (const { id } of items) t.equal((await on.ask(`/${id}`)).status, 451)
})
