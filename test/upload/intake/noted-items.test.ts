/** What lies in an accepted bundle was paid for with it: nobody has its owner pay again, whether the bundle was opened or not. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { silentLog } from '../../../src/actor/log.js'
import { encodeBundle } from '../../../src/format/bundle.js'
import { type Id, idBytes, idOfBytes } from '../../../src/format/id.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { tagOf } from '../../../src/format/tag.js'
import { sha256 } from '../../../src/proof/digest.js'
import { ed25519Signer, signItem } from '../../../src/proof/sign.js'
import { DurableLog } from '../../../src/store/segments/durable-log.js'
import { neverPosted } from '../../../src/upload/charging/network-posts.js'
import { Sales } from '../../../src/upload/charging/sales.js'
import { ServicePosts } from '../../../src/upload/charging/service-posts.js'
import { BundleScan } from '../../../src/upload/intake/bundle-scan.js'
import { insideIds } from '../../../src/upload/intake/inside-ids.js'
import { type AcceptedItem, openUploadTables, Uploads } from '../../../src/upload/records/uploads.js'
import type { UploadAnswer } from '../../../src/upload/requests/upload-answers.js'
import { eventually } from '../../eventually.js'
import { answered, type RigOptions, requestOf, type UploadRig, uploadRig } from '../upload-rig.js'
import { salesByHand } from '../usdc-sales.js'

const signer = ed25519Signer(Buffer.alloc(32, 7))
const tags = [tagOf('Bundle-Format', 'binary'), tagOf('Bundle-Version', '2.0.0')]
const itemOf = (text: string): Buffer => Buffer.from(signItem(signer, {}, Buffer.from(text)))
const idOf = (item: Uint8Array): Id => idOfBytes(sha256(item.subarray(2, 66)))
const payloadOf = (items: readonly Uint8Array[]): Buffer =>
  Buffer.from(encodeBundle(items.map((bytes) => ({ id: idOf(bytes), bytes }))))
const signed = (payload: Uint8Array): Buffer => Buffer.from(signItem(signer, { tags }, payload))
const bundleOf = (...items: readonly Uint8Array[]): Buffer => signed(payloadOf(items))
const nested = (item: Uint8Array, levels: number): Buffer =>
  levels === 0 ? Buffer.from(item) : bundleOf(itemOf(`beside ${levels}`), nested(item, levels - 1))
const many = (count: number, text: string): Buffer[] =>
  Array.from({ length: count }, (_, at) => itemOf(`${text} ${at}`))

/** A service where nothing is free, and no bundle is opened. */
async function service(t: Test, insideMax = 1_000_000, more: RigOptions = {}): Promise<UploadRig> {
  const environment = openUploadTables(t.testdir())
  t.teardown(() => environment.close())
  const free = { itemMaxBytes: 0, walletBytes: 0, rangeBytes: 0, exemptWallets: [] }
  return uploadRig(t, environment, { isRich: true, free, insideMax, ...more })
}

function post(rig: UploadRig, item: Buffer, from = '198.51.100.7'): Promise<UploadAnswer> {
  const headers = { 'content-length': String(item.length) }
  return answered(rig, '/tx', requestOf('POST', '/tx', { headers, from, pieces: [item] }))
}

t.test('whatever form a bundle has, its items are not charged again', async (t) => {
  const rig = await service(t)
  const large = Buffer.from(signItem(signer, {}, Buffer.alloc(300_000, 1)))
  const shapes: [string, Buffer, Buffer[]][] = [
    ['one level', bundleOf(itemOf('a'), itemOf('b')), [itemOf('a'), itemOf('b')]],
    ['a large item', bundleOf(large, itemOf('its metadata')), [large]],
    ['two levels', nested(itemOf('two'), 2), [itemOf('two'), nested(itemOf('two'), 1)]],
    ['ten levels', nested(itemOf('ten'), 10), [itemOf('ten'), itemOf('beside 7'), nested(itemOf('ten'), 5)]],
    [
      'many items',
      bundleOf(...many(5000, 'many')),
      [itemOf('many 0'), itemOf('many 2500'), itemOf('many 4999')],
    ],
    [
      'many in one of two',
      bundleOf(bundleOf(...many(700, 'x')), itemOf('y')),
      [itemOf('x 699'), itemOf('y')],
    ],
    ['cut off', signed(payloadOf([itemOf('whole'), itemOf('cut off')]).subarray(0, -3)), [itemOf('whole')]],
  ]
  for (const [name, bundle, items] of shapes) {
    t.equal((await post(rig, bundle)).status, 200, name)
    const before = rig.questions.length
    for (const item of items) {
      const answer = await post(rig, item, '203.0.113.9')
      t.match(answer, { status: 409, text: idOf(bundle) }, `an item of ${name}`)
    }
    t.equal(rig.questions.length, before, 'no credits were asked for')
    t.equal((await post(rig, bundle)).status, 202, 'the bundle itself is known')
  }
  t.equal((await post(rig, itemOf('another one'), '203.0.113.9')).status, 200)
})

t.test('who names an item in a table and has it not keeps its owner from nothing', async (t) => {
  const rig = await service(t)
  const [own, mine] = [itemOf('of the owner'), itemOf('of a stranger')]
  const forged = payloadOf([mine, itemOf('more')])
  forged.set(idBytes(idOf(own)), 32 + 32)
  t.equal((await post(rig, signed(forged), '203.0.113.9')).status, 200)
  t.equal((await post(rig, own)).status, 200)
  t.equal((await post(rig, mine)).status, 409, 'an item has its own id, whatever the table says')
})

/** A service that takes USDC. */
async function usdcService(t: Test) {
  const sales = salesByHand(t)
  const rig = await service(t, 1_000_000, sales.options)
  return { rig, buy: (item: Buffer) => sales.buy(rig, item), settle: sales.settle }
}

t.test('what a bundle only names is never paid back, and nobody is charged for it meanwhile', async (t) => {
  const { rig, buy, settle } = await usdcService(t)
  const items = Array.from({ length: 5 }, (_, at) =>
    Buffer.from(signItem(signer, {}, Buffer.alloc(100_000, at))),
  )
  const [first = Buffer.alloc(0), ...others] = items
  const heads = items.map((item) => ({ id: idOf(item), bytes: item.subarray(0, 200) }))
  const bundle = signed(Buffer.from(encodeBundle(heads)))
  t.equal((await post(rig, first)).status, 200)
  const { answer } = await buy(bundle)
  const before = rig.questions.length
  for (const item of others) t.match(await post(rig, item), { status: 503, text: /being paid for/ })
  t.equal(rig.questions.length, before, 'no credits were asked for')
  settle(0, true)
  t.equal((await answer).status, 200)
  for (const item of others) t.equal((await post(rig, item)).status, 409)
  rig.uploads.environment.write(() => rig.uploads.scanned.wait(idOf(bundle)))
  rig.noting.wake()
  await eventually('it is read again', () => !rig.noting.isBehind)
  t.equal(rig.questions.includes('refund'), false)
  t.equal((await post(rig, first)).status, 202, 'an order of its own')
})

t.test('a copied header keeps nobody from what is free, or what he pays for himself', async (t) => {
  const sales = salesByHand(t)
  const free = { itemMaxBytes: 2000, walletBytes: 1e9, rangeBytes: 1e9, exemptWallets: [] }
  const rig = await service(t, 1_000_000, { ...sales.options, free })
  const [small, large] = [1000, 100_000].map((size) =>
    Buffer.from(signItem(signer, {}, Buffer.alloc(size, 3))),
  ) as [Buffer, Buffer]
  const heads = [small, large].map((item) => ({ id: idOf(item), bytes: item.subarray(0, 200) }))
  t.equal((await post(rig, signed(Buffer.from(encodeBundle(heads))), '203.0.113.9')).status, 200)
  const before = rig.questions.length
  t.match(await post(rig, large), { status: 409 }, 'its owner pays nothing')
  t.equal(rig.questions.length, before, 'no credits were asked for')
  t.match(await post(rig, small), { status: 200 })
  const { answer } = await sales.buy(rig, large)
  sales.settle(0, true)
  t.equal((await answer).status, 200)
})

t.test('an order about credits that lies in a bundle is not given', async (t) => {
  const { uploads, noting, bundle } = await found(t)
  const order = itemOf('an order')
  bundle(payloadOf([order]), 1)
  noting.start()
  await eventually('all is noted', () => !noting.isBehind)
  const earlier = new ServicePosts(noting, undefined, neverPosted)
  const posted = {
    id: idOf(order),
    wallet: 'w',
    bytes: 0,
    client: '203.0.113.9',
    isAtHome: true,
    mayGoUnchecked: false,
  }
  t.equal(await earlier.wasPosted(posted), true)
  t.equal(await earlier.wasPosted({ ...posted, id: idOf(itemOf('another')) }), false)
  t.ok(uploads.scannedBundleOf(idOf(order)))
})

t.test('a bundle that is not paid for keeps nobody from anything', async (t) => {
  const { rig, buy, settle } = await usdcService(t)
  const inside = many(3000, 'unpaid')
  const { answer } = await buy(bundleOf(...inside))
  t.equal((await post(rig, itemOf('unpaid 7'))).status, 503)
  settle(0, false)
  t.equal((await answer).status, 402)
  t.strictSame(rig.uploads.scanned.behind(undefined, 10), [], 'no row stays')
  t.equal((await post(rig, itemOf('unpaid 7'))).status, 200)
})

t.test('of two bundles with one item, whichever is paid for has it', async (t) => {
  for (const paid of ['the first', 'the second', 'both']) {
    const { rig, buy, settle } = await usdcService(t)
    const item = itemOf('in both')
    const first = await buy(bundleOf(item, itemOf('more')))
    const second = await buy(bundleOf(item, ...many(2100, 'others')))
    settle(0, paid !== 'the second')
    await first.answer
    settle(1, paid !== 'the first')
    await second.answer
    await eventually('all is noted', () => !rig.noting.isBehind)
    t.equal((await post(rig, item)).status, 409, paid)
  }
})

t.test('a bundle with one item several times is not read again', async (t) => {
  const rig = await service(t)
  const inside = many(2100, 'twice')
  t.equal((await post(rig, bundleOf(...inside, ...inside))).status, 200)
  t.equal(rig.noting.isBehind, false)
})

t.test('nothing is written of a large bundle that is refused', async (t) => {
  const rig = await service(t, 6000)
  const wide = bundleOf(...many(6001, 'wide'))
  const deep = bundleOf(...many(3000, 'beside'), nested(itemOf('deep'), 10))
  for (const bundle of [wide, deep]) {
    t.equal((await post(rig, bundle)).status, 400)
    t.strictSame(rig.uploads.scanned.behind(undefined, 10), [])
  }
})

t.test('a bundle that cannot be noted is refused, and nothing of it stays', async (t) => {
  const rig = await service(t, 20)
  const wide = bundleOf(...many(21, 'wide'))
  const spread = bundleOf(bundleOf(...many(10, 'one')), bundleOf(...many(9, 'two')))
  const deep = nested(itemOf('deep'), 11)
  for (const bundle of [wide, spread, deep]) {
    const answer = await post(rig, bundle)
    t.equal(answer.status, 400)
    t.match(answer.text, bundle === deep ? /10 levels/ : /more than 20 items/)
    t.equal(rig.questions.at(-1), 'withdraw', 'what was reserved is given back')
    t.equal(rig.uploads.find(idOf(bundle)), undefined)
  }
  t.equal((await post(rig, bundleOf(...many(20, 'wide')))).status, 200)
  t.equal((await post(rig, itemOf('deep'))).status, 200, 'its owner can still upload it')
})

/** Bundles and items as a start has found them: they were accepted, and nothing was noted. */
async function found(t: Test) {
  const folder = t.testdir()
  const uploads = new Uploads(openUploadTables(join(folder, 'tables')))
  const log = await DurableLog.open(join(folder, 'log'))
  const closing = new AbortController()
  const stored = (item: Buffer, receivedMs: number, more: Partial<AcceptedItem> = {}): AcceptedItem => {
    const place = log.append([item], createHash('sha256').update(item).digest())
    if (isRefusal(place)) throw new Error(place.message)
    const headerSize = item.length - (more.headerSize ?? 0)
    const facts = { id: idOf(item), owner: 'o', receivedMs, deadlineHeight: 1, winc: '5' }
    return { ...facts, ...more, headerSize, place }
  }
  const accept = (...item: Parameters<typeof stored>): AcceptedItem => {
    const accepted = stored(...item)
    uploads.accept([accepted], () => undefined)
    return accepted
  }
  const bundle = (payload: Buffer, receivedMs: number, act = accept): AcceptedItem =>
    act(signed(payload), receivedMs, { isBundle: true, headerSize: payload.length })
  const watching = { clock: systemClock, logger: silentLog, closing: closing.signal }
  const sales = new Sales(uploads.environment)
  const isInBlock = (id: Id): boolean => id === idOf(itemOf('mined'))
  const made = (): BundleScan =>
    new BundleScan({ uploads, sales, itemLog: log, blockedOwners: new Set(), ...watching, isInBlock })
  const noting = made()
  t.teardown(async () => {
    closing.abort()
    await noting.stopped()
    await log.close()
    await uploads.environment.close()
  })
  return { uploads, sales, noting, made, stored, accept, bundle }
}

t.test('bundles that a start has found are noted, and until then strangers wait', async (t) => {
  const { uploads, noting, accept, bundle } = await found(t)
  const [early, charged, free] = [itemOf('early'), itemOf('charged'), itemOf('free')]
  accept(early, 1)
  const one = bundle(payloadOf([early, charged, free, ...many(600, 'others')]), 2)
  accept(charged, 3)
  accept(free, 3, { winc: '0' })
  const earlier = new ServicePosts(noting, undefined, neverPosted)
  const posted = { id: idOf(charged), wallet: 'w', bytes: 1, client: '203.0.113.9' }
  const isKnown = (isAtHome: boolean, mayGoUnchecked = true) =>
    earlier.wasPosted({ ...posted, isAtHome, mayGoUnchecked: mayGoUnchecked })
  t.match(await isKnown(false), { refused: 'busy' })
  t.match(await isKnown(true, false), { refused: 'busy' }, 'nor are credits shared')
  t.equal(await isKnown(true), false, 'who posts from home does not')
  noting.start()
  await eventually('all is noted', () => !noting.isBehind)
  t.equal(await isKnown(false), true, 'in a bundle')
  const another = { ...posted, id: idOf(itemOf('another')), isAtHome: false, mayGoUnchecked: true }
  t.equal(await earlier.wasPosted(another), false)
  for (const item of [early, charged, free, itemOf('others 599')])
    t.equal(uploads.scannedBundleOf(idOf(item))?.id, one.id)
  const late = bundle(payloadOf([itemOf('late')]), 9)
  uploads.environment.write(() => uploads.scanned.wait(late.id))
  t.ok(noting.isBehind)
  noting.wake()
  await eventually('a late one, too', () => !noting.isBehind)
  t.equal(uploads.scannedBundleOf(idOf(itemOf('late')))?.id, late.id)
})

t.test('a bundle that waits for its payment when a start finds it is noted', async (t) => {
  const { uploads, sales, made, stored, bundle } = await found(t)
  const item = bundle(payloadOf([itemOf('on sale')]), 1, stored)
  const facts = { payment: 'p', units: '1', bytes: 1, request: 'r', openedMs: 1, itemId: item.id }
  sales.begin({ ...facts, item })
  const noting = made()
  t.ok(noting.isBehind)
  noting.start()
  await eventually('it is noted', () => !noting.isBehind)
  t.equal(uploads.scanned.bundleOf(idOf(itemOf('on sale'))), item.id)
  await noting.sweep()
  await noting.sweep()
  t.equal(uploads.scanned.bundleOf(idOf(itemOf('on sale'))), item.id, 'while its payment may be made')
})

t.test('rows that are not needed any more are removed', async (t) => {
  const { uploads, noting, bundle } = await found(t)
  const kept = bundle(payloadOf([itemOf('kept')]), 1)
  const over = bundle(payloadOf([itemOf('mined'), itemOf('not indexed')]), 2)
  const gone = bundle(payloadOf([itemOf('gone')]), 3)
  noting.start()
  await eventually('all is noted', () => !noting.isBehind)
  uploads.environment.write(() => {
    uploads.put({ ...over, permanent: 7, released: true })
    uploads.letGo(gone, 'a sandbox')
    uploads.scanned.put([idBytes(idOf(itemOf('refused')))], idOf(itemOf('never accepted')), () => true)
  })
  const left = (): string[] =>
    ['kept', 'mined', 'not indexed', 'gone', 'refused'].filter(
      (text) => uploads.scanned.bundleOf(idOf(itemOf(text))) !== undefined,
    )
  t.equal(uploads.scannedBundleOf(idOf(itemOf('gone'))), undefined, 'it may be uploaded anew')
  await noting.sweep()
  t.strictSame(left(), ['kept', 'not indexed', 'refused'])
  await noting.sweep()
  t.strictSame(left(), ['kept', 'not indexed'])
  t.equal(uploads.scannedBundleOf(idOf(itemOf('kept')))?.id, kept.id)
})

t.test('only tables and headers are read, in pieces', async (t) => {
  // A file of 1 TB with three items, of which only the headers are there.
  const [first, second] = [itemOf('first'), itemOf('second')]
  const terabyte = 2 ** 40
  const table = payloadOf([first, second]).subarray(0, 32 + 2 * 64)
  table.writeBigUInt64LE(BigInt(terabyte), 32)
  const secondAt = table.length + terabyte
  let read = 0
  const readAt = async (buffer: Uint8Array, at: number): Promise<number> => {
    read += buffer.length
    for (const [bytes, from] of [
      [table, 0],
      [first, table.length],
      [second, secondAt],
    ] as const)
      for (let byte = 0; byte < bytes.length; byte += 1)
        if (from + byte >= at && from + byte < at + buffer.length) buffer[from + byte - at] = bytes[byte] ?? 0
    return buffer.length
  }
  const ids: Id[] = []
  for await (const step of insideIds(readAt, { start: 0, end: secondAt + second.length }))
    ids.push(...step.ids.map((id) => idOfBytes(id)))
  t.strictSame(ids, [idOf(first), idOf(second)])
  t.ok(read < 200_000, `${read} bytes`)
})
