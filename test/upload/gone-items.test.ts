/** Items that a sandbox kept for their time, and that are uploaded anew. */
import { createHash } from 'node:crypto'
import { getEventListeners } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { idOfBytes } from '../../src/format/id.js'
import { isRefusal } from '../../src/format/refusal.js'
import { DurableLog } from '../../src/store/segments/durable-log.js'
import type { LogPlace } from '../../src/store/segments/log-file.js'
import { Sales } from '../../src/upload/charging/sales.js'
import { openIntake } from '../../src/upload/intake/open-intake.js'
import { GatewayNews } from '../../src/upload/news/gateway-news.js'
import { FreePools } from '../../src/upload/records/free-pools.js'
import {
  type AcceptedItem,
  type LoggedUpload,
  openUploadTables,
  Uploads,
} from '../../src/upload/records/uploads.js'
import { serveWeb } from '../admission/web.js'
import { eventually } from '../eventually.js'

const gone = { released: true, reason: 'kept for its time' } as const

function metaOf(at: number, receivedMs: number): LoggedUpload {
  return {
    id: idOfBytes(Buffer.alloc(32, at)),
    headerSize: 10,
    owner: 'o'.repeat(43),
    receivedMs,
    deadlineHeight: 1,
    winc: '0',
  }
}

t.test('a gateway elsewhere forgets what is gone, and keeps what was uploaded anew since', async (t) => {
  const heard: unknown[] = []
  let isAway = true
  const web = await serveWeb(t, (call) => {
    if (isAway) return call.json(503, {})
    heard.push([call.path, JSON.parse(call.text)])
    call.json(200, {})
  })
  const environment = openUploadTables(t.testdir())
  const uploads = new Uploads(environment)
  const closing = new AbortController()
  const news = new GatewayNews({
    environment,
    uploads,
    logFolder: t.testdir(),
    url: web.url,
    key: 'key',
    publicKey: 'key',
    clock: systemClock,
    logger: silentLog,
    closing: closing.signal,
  })
  const place = { file: 1, offset: 0, sizeBytes: 11 }
  const items = [1, 2, 3].map((at): AcceptedItem => ({ ...metaOf(at, at), place, ...gone }))
  environment.write(() => {
    for (const item of items) {
      uploads.put(item)
      news.addGone(item.id)
    }
  })
  uploads.accept([{ ...metaOf(2, 20), place }], () => undefined)
  isAway = false
  const running = news.run()
  await eventually('the gateway hears of it', () => heard.length > 0)
  t.strictSame(heard, [['/forget-data-item', [items[0]?.id, items[2]?.id]]])
  await eventually('no news waits', () => environment.table('news').count() === 0)
  // Where there is nothing else, no request is sent.
  for (let round = 0; round < 5; round += 1) {
    environment.write(() => news.addGone(items[1]?.id ?? metaOf(2, 0).id))
    news.wake()
    await eventually('no news waits', () => environment.table('news').count() === 0)
  }
  t.equal(heard.length, 1)
  await eventually('it waits until the end', () => getEventListeners(closing.signal, 'abort').length === 1)
  t.equal(getEventListeners(closing.signal, 'abort').length, 1, 'however often it was woken')
  closing.abort()
  await running
  await environment.close()
})

t.test('what was uploaded anew is found again after a power cut, once', async (t) => {
  const folder = t.testdir()
  const logFolder = join(folder, 'log')
  const environment = openUploadTables(folder)
  const uploads = new Uploads(environment)
  const before = await DurableLog.open(logFolder)
  const put = async (meta: LoggedUpload): Promise<LogPlace> => {
    const bytes = Buffer.from('bytes of an item')
    const draft = before.draft()
    await draft.write(bytes)
    const digest = createHash('sha256').update(bytes).digest()
    const place = await draft.finish(digest, Buffer.from(JSON.stringify(meta)))
    if (isRefusal(place)) throw new Error(place.message)
    return place
  }
  const [first, second] = [await put(metaOf(1, 1)), await put({ ...metaOf(1, 2), heldAs: 'upload' })]
  const [old] = [await put(metaOf(2, 1)), await put(metaOf(2, 2))]
  await before.close()
  // Of the first item nothing is in the tables; of the other one what was there before it came anew.
  environment.write(() => uploads.put({ ...metaOf(2, 1), place: old, ...gone }))
  const rules = { itemMaxBytes: 0, walletBytes: 0, rangeBytes: 0, exemptWallets: [] }
  const parts = { uploads, sales: new Sales(environment), pools: new FreePools(environment, rules) }
  const { itemLog: log, lost } = await openIntake(logFolder, { ...parts, clock: systemClock, log: silentLog })
  t.strictSame(
    lost.map(({ id, receivedMs }) => [id, receivedMs]),
    [
      [metaOf(1, 2).id, 2],
      [metaOf(2, 2).id, 2],
    ],
  )
  t.notSame(first, second)
  t.match(uploads.find(metaOf(1, 2).id), { place: second, receivedMs: 2 })
  t.match(
    uploads.ofReservation('upload'),
    { place: second, receivedMs: 2 },
    'what has paid for it is not given back',
  )
  t.notOk(uploads.find(metaOf(2, 2).id)?.released)
  t.strictSame([...uploads.oldest(10)], [metaOf(1, 2).id, metaOf(2, 2).id])
  await log.close()
  await environment.close()
})
