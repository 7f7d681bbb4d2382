/** What lies in uploaded bundles: it is counted, and a flood of it keeps nobody else waiting. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { silentLog } from '../../../src/actor/log.js'
import { encodeBundle } from '../../../src/format/bundle.js'
import { type Id, idOfBytes } from '../../../src/format/id.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { type Tag, tagOf } from '../../../src/format/tag.js'
import { sha256 } from '../../../src/proof/digest.js'
import { ed25519Signer, signItem } from '../../../src/proof/sign.js'
import { DurableLog } from '../../../src/store/segments/durable-log.js'
import { InnerItems } from '../../../src/upload/intake/inner-items.js'
import { ItemReader } from '../../../src/upload/intake/item-reader.js'
import { type AcceptedItem, openUploadTables, Uploads } from '../../../src/upload/records/uploads.js'
import { turnOf } from '../../../src/upload/records/waiting-lines.js'
import { eventually } from '../../eventually.js'
import { answered, requestOf, uploadRig } from '../upload-rig.js'

const signer = ed25519Signer(Buffer.alloc(32, 7))
const bundleTags = [tagOf('Bundle-Format', 'binary'), tagOf('Bundle-Version', '2.0.0')]
const itemOf = (text: string): Uint8Array => signItem(signer, {}, Buffer.from(text))
const idOf = (item: Uint8Array): Id => idOfBytes(sha256(item.subarray(2, 66)))
const payloadOf = (items: readonly Uint8Array[]): Buffer =>
  Buffer.from(encodeBundle(items.map((bytes) => ({ id: idOf(bytes), bytes }))))
const signed = (payload: Uint8Array, tags: readonly Tag[] = bundleTags): Buffer =>
  Buffer.from(signItem(signer, { tags: [...tags] }, payload))
const named = (count: number, text: string): Uint8Array[] =>
  Array.from({ length: count }, (_, at) => itemOf(`${text} ${at}`))

t.test('the items that the header of a bundle names are counted as they come', async (t) => {
  const countOf = (item: Buffer, pieceBytes: number): number => {
    const reader = new ItemReader(false, new Set())
    for (let at = 0; at < item.length; at += pieceBytes) reader.push(item.subarray(at, at + pieceBytes))
    const read = reader.finish()
    if (isRefusal(read)) throw new Error(read.message)
    return read.itemsInside
  }
  const payload = payloadOf(named(5, 'counted'))
  for (const pieceBytes of [1, 7, 100_000]) t.equal(countOf(signed(payload), pieceBytes), 5)
  t.equal(countOf(signed(payload, []), 1000), 0, 'it is no bundle')
  t.equal(countOf(signed(payload.subarray(0, 200)), 1000), 0, 'so many do not fit: none is ever opened')
  t.equal(countOf(signed(Buffer.alloc(0)), 1000), 0)
})

t.test('a free bundle costs its range each of its items, however it comes', async (t) => {
  const environment = openUploadTables(t.testdir())
  t.teardown(() => environment.close())
  const free = {
    itemMaxBytes: 1e6,
    walletBytes: 1e9,
    rangeBytes: 30_000,
    itemOverheadBytes: 3072,
    exemptWallets: [],
  }
  const rig = await uploadRig(t, environment, { free })
  const post = async (path: string, body: Buffer, from: string, more = {}): Promise<number> => {
    const headers = { 'content-length': String(body.length), ...more }
    return (await answered(rig, path, requestOf('POST', path, { headers, from, pieces: [body] }))).status
  }
  const [few, many] = [payloadOf(named(3, 'few')), payloadOf(named(9, 'many'))]
  t.equal(await post('/tx', signed(many), '198.51.100.1'), 402)
  t.equal(await post('/tx', signed(few), '198.51.100.1'), 200)
  t.equal(rig.pools.leftOfRange('198.51.100.1'), 30_000 - signed(few).length - 4 * 3072)
  const raw = '/x402/upload/unsigned'
  const tags = [
    { name: 'Bundle-Format', value: 'binary' },
    { name: 'Bundle-Version', value: '2.0.0' },
  ]
  const asBundle = { 'x-data-item-tags': JSON.stringify(tags) }
  t.equal(await post(raw, many, '198.51.100.2', asBundle), 402)
  t.equal(rig.pools.leftOfRange('198.51.100.2'), 30_000, 'nothing is taken for it')
  t.equal(await post(raw, few, '198.51.100.2', asBundle), 200)
  const left = rig.pools.leftOfRange('198.51.100.2') ?? 0
  t.ok(left < 30_000 - few.length - 4 * 3072 && left > 30_000 - few.length - 5 * 3072)
})

t.test('files of a small bundle are there though large ones of others wait', async (t) => {
  const folder = t.testdir()
  const uploads = new Uploads(openUploadTables(join(folder, 'tables')))
  const log = await DurableLog.open(join(folder, 'log'))
  const accepted = (bundle: Buffer, at: number, address: string, itemsInside: number): AcceptedItem => {
    const place = log.append([bundle], createHash('sha256').update(bundle).digest())
    if (isRefusal(place)) throw new Error(place.message)
    const reader = new ItemReader(false, new Set())
    reader.push(bundle)
    const turn = turnOf({ keys: [`r:${address}`, 'w:wallet'], bytes: 1 }) ?? ''
    const headerSize = reader.header?.headerSize ?? 0
    const facts = { id: idOf(bundle), headerSize, owner: 'o', receivedMs: at, deadlineHeight: 1, winc: '0' }
    return { ...facts, place, isBundle: true, itemsInside, turn }
  }
  const many = payloadOf(named(600, 'flood'))
  const flood = Array.from({ length: 40 }, (_, at) =>
    accepted(signed(many, [...bundleTags, tagOf('at', `${at}`)]), at, `198.51.${at % 8}.1`, 600),
  )
  const small = accepted(signed(payloadOf(named(3, 'small'))), 1000, '203.0.113.5', 3)
  uploads.accept([...flood, small], () => undefined)
  const closing = new AbortController()
  let announced = 0
  const inner = new InnerItems({
    uploads,
    blockedOwners: new Set(),
    logFolder: join(folder, 'log'),
    verdicts: { verdict: async () => true },
    announcer: {
      announce: async () => {
        announced += 1
      },
    },
    isSandbox: false,
    // No client's time limit is over before the bundle is opened, however slow the machine is.
    clock: { ...systemClock, after: () => ({ cancel: () => undefined }) },
    logger: silentLog,
    closing: closing.signal,
  })
  await inner.opened(small.id)
  t.notOk(uploads.isUnopened(small.id))
  t.ok(announced < 3 + 2 * 600, `${announced} items were opened until then`)
  await eventually('all bundles are opened', () => flood.every(({ id }) => !uploads.isUnopened(id)))
  t.equal(announced, 3 + 40 * 600, 'all are opened to their end, by portions')
  closing.abort()
  await inner.stopped()
  await log.close()
  await uploads.environment.close()
})
