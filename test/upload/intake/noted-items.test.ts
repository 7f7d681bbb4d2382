/** What lies in an accepted bundle was paid for with it: nobody has its owner pay again, whether the bundle was opened or not. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { silentLog } from '../../../src/actor/log.js'
import { encodeBundle } from '../../../src/format/bundle.js'
import { type Id, idBytes, idOfBytes } from '../../../src/format/id.js'
import { isRefusal, refuse } from '../../../src/format/refusal.js'
import { tagOf } from '../../../src/format/tag.js'
import { sha256 } from '../../../src/proof/digest.js'
import { ed25519Signer, signItem } from '../../../src/proof/sign.js'
import { DurableLog } from '../../../src/store/segments/durable-log.js'
import type { UploadAnswer } from '../../../src/upload/calls/upload-answers.js'
import { insideIds } from '../../../src/upload/intake/inside-ids.js'
import { Noting } from '../../../src/upload/intake/noting.js'
import { type AcceptedItem, openUploadTables, Uploads } from '../../../src/upload/records/uploads.js'
import { AcceptedBefore } from '../../../src/upload/selling/accepted-before.js'
import { onlyHere } from '../../../src/upload/selling/earlier-post.js'
import { eventually } from '../../eventually.js'
import { answered, requestOf, type UploadRig, uploadRig } from '../upload-rig.js'

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
async function service(t: Test, insideMax = 1_000_000): Promise<UploadRig> {
  const environment = openUploadTables(t.testdir())
  t.teardown(() => environment.close())
  const free = { itemMaxBytes: 0, walletBytes: 0, rangeBytes: 0, exemptWallets: [] }
  return uploadRig(t, environment, { isRich: true, free, insideMax })
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
  const accept = (item: Buffer, receivedMs: number, more: Partial<AcceptedItem> = {}): AcceptedItem => {
    const place = log.append([item], createHash('sha256').update(item).digest())
    if (isRefusal(place)) throw new Error(place.message)
    const headerSize = item.length - (more.headerSize ?? 0)
    const facts = { id: idOf(item), owner: 'o', receivedMs, deadlineHeight: 1, winc: '5' }
    const accepted = { ...facts, ...more, headerSize, place }
    uploads.accept([accepted], () => undefined)
    return accepted
  }
  const bundle = (payload: Buffer, receivedMs: number): AcceptedItem =>
    accept(signed(payload), receivedMs, { isBundle: true, headerSize: payload.length })
  const watching = { clock: systemClock, logger: silentLog, closing: closing.signal }
  const noting = new Noting({ uploads, log, ...watching, isInBlock: (id) => id === idOf(itemOf('mined')) })
  t.teardown(async () => {
    closing.abort()
    await noting.stopped()
    await log.close()
    await uploads.environment.close()
  })
  return { uploads, noting, accept, bundle }
}

t.test('bundles that a start has found are noted, and until then strangers wait', async (t) => {
  const { uploads, noting, accept, bundle } = await found(t)
  const [early, charged, free] = [itemOf('early'), itemOf('charged'), itemOf('free')]
  accept(early, 1)
  const one = bundle(payloadOf([early, charged, free, ...many(600, 'others')]), 2)
  accept(charged, 3)
  accept(free, 3, { winc: '0' })
  const earlier = new AcceptedBefore(noting, undefined, onlyHere)
  const posted = { id: idOf(charged), wallet: 'w', bytes: 1, client: '203.0.113.9' }
  const isKnown = (isAtHome: boolean, mayGoUnasked = true) =>
    earlier.isKnown({ ...posted, isAtHome, mayGoUnasked })
  t.match(await isKnown(false), { refused: 'busy' })
  t.match(await isKnown(true, false), { refused: 'busy' }, 'nor are credits shared')
  t.equal(await isKnown(true), false, 'who posts from home does not')
  const paidBack: Id[] = []
  noting.start(async (id) => {
    paidBack.push(id)
    return paidBack.length === 1 ? refuse('late', 'self', 'away') : {}
  })
  await eventually('all is noted', () => !noting.isBehind)
  t.equal(await isKnown(false), false)
  for (const item of [early, charged, free, itemOf('others 599')])
    t.equal(uploads.noteOf(idOf(item))?.id, one.id)
  const twice = [idOf(charged), idOf(charged)]
  t.strictSame(paidBack, twice, 'given back, asked again; what came before its bundle was an order')
  const late = bundle(payloadOf([itemOf('late')]), 9)
  uploads.environment.write(() => uploads.noted.wait(late.id))
  t.ok(noting.isBehind)
  noting.wake()
  await eventually('a late one, too', () => !noting.isBehind)
  t.equal(uploads.noteOf(idOf(itemOf('late')))?.id, late.id)
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
    uploads.noted.put([idBytes(idOf(itemOf('refused')))], idOf(itemOf('never accepted')), () => true)
  })
  const left = (): string[] =>
    ['kept', 'mined', 'not indexed', 'gone', 'refused'].filter(
      (text) => uploads.noted.bundleOf(idOf(itemOf(text))) !== undefined,
    )
  t.equal(uploads.noteOf(idOf(itemOf('gone'))), undefined, 'it may be uploaded anew')
  await noting.sweep()
  t.strictSame(left(), ['kept', 'not indexed', 'refused'])
  await noting.sweep()
  t.strictSame(left(), ['kept', 'not indexed'])
  t.equal(uploads.noteOf(idOf(itemOf('kept')))?.id, kept.id)
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
