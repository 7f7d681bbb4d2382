/** What the upload service does while its database can write nothing. */
import t, { type Test } from 'tap'
import { type Clock, endsWithin, pause, systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { isRefusal } from '../../src/format/refusal.js'
import type { CreditsPort } from '../../src/payment/credits-port.js'
import { normalizedAddress } from '../../src/proof/owner-address.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import type { Environment } from '../../src/store/lmdb.js'
import { CreditCharging } from '../../src/upload/charging/credit-charging.js'
import { KnownPosters } from '../../src/upload/charging/known-posters.js'
import { neverPosted } from '../../src/upload/charging/network-posts.js'
import { OpenSales } from '../../src/upload/charging/open-sales.js'
import { RepostCheck } from '../../src/upload/charging/repost-check.js'
import { Sales } from '../../src/upload/charging/sales.js'
import { Height } from '../../src/upload/intake/height.js'
import { ItemIntake } from '../../src/upload/intake/item-intake.js'
import { ItemReader } from '../../src/upload/intake/item-reader.js'
import { ItemAnnouncer } from '../../src/upload/news/item-announcer.js'
import { ReceiptNews } from '../../src/upload/news/receipt-news.js'
import { MultipartRecords } from '../../src/upload/parts/multipart-records.js'
import { FreePools } from '../../src/upload/records/free-pools.js'
import type { Receipt } from '../../src/upload/records/receipt.js'
import { openUploadTables, Uploads } from '../../src/upload/records/uploads.js'
import type { UploadAnswer } from '../../src/upload/requests/upload-answers.js'
import { eventually } from '../eventually.js'
import { HandClock } from '../names/hand-clock.js'
import { headerOf } from '../signed-item.js'
import { acceptedItem } from './accepted-item.js'
import { type FailingDisk, failingDisk } from './failing-disk.js'

const oldItems = (environment: Environment): RepostCheck =>
  new RepostCheck(neverPosted, new KnownPosters(environment), systemClock, { bundleOf: () => undefined })

const item = signItem(ed25519Signer(Buffer.alloc(32, 7)), {}, Buffer.from('while the disk is full'))
const header = headerOf(item)
const bundleTags = [
  { name: 'Bundle-Format', value: 'binary' },
  { name: 'Bundle-Version', value: '2.0.0' },
].map(({ name, value }) => ({ name: Buffer.from(name), value: Buffer.from(value) }))
const bundle = signItem(ed25519Signer(Buffer.alloc(32, 7)), { tags: bundleTags }, Buffer.alloc(32))
const uploader = { address: undefined, paidBy: [], token: undefined }
const nothingFree = { itemMaxBytes: 0, walletBytes: 0, rangeBytes: 0, exemptWallets: [] }
const allFree = { itemMaxBytes: 1e6, walletBytes: 1e6, rangeBytes: 1e6, exemptWallets: [] }

function diskOf(t: Test): FailingDisk {
  const sound = openUploadTables(t.testdir())
  t.teardown(() => sound.close())
  return failingDisk(sound)
}

/** Credits without end, and the calls to them. */
function endlessCredits(): { readonly calls: string[]; readonly credits: CreditsPort } {
  const calls: string[] = []
  const counted =
    <T>(word: string, value: T) =>
    async (): Promise<T> => {
      calls.push(word)
      return value
    }
  return {
    calls,
    credits: {
      price: counted('price', { winc: '5' }),
      check: counted('check', { isEnough: true, isUnknownWallet: false, winc: '5', balance: '9' }),
      reserve: counted('reserve', { paid: true as const, winc: '5' }),
      settle: counted('settle', { winc: '5' }),
      refund: counted('refund', { winc: '5' }),
      withdraw: counted('withdraw', { winc: '5' }),
      approve: counted('approve', { denied: true as const, status: 400 as const, text: 'no' }),
      revoke: counted('revoke', []),
    },
  }
}

t.test('who would pay is answered, and nothing is held back', async (t) => {
  const disk = diskOf(t)
  const { calls, credits } = endlessCredits()
  const closing = new AbortController()
  t.teardown(() => closing.abort())
  const pools = new FreePools(disk.environment, nothingFree)
  const charging = new CreditCharging(
    pools,
    credits,
    disk.environment,
    oldItems(disk.environment),
    systemClock,
    closing.signal,
  )
  disk.isFull = true
  const charge = charging.charge(header, item.length, uploader)
  t.match(await charge, { status: 503, text: /disk/ }, 'nobody waits for the disk')
  t.strictSame(calls, [])
  disk.isFull = false
  const charged = await charging.charge(header, item.length, uploader)
  if (!('refund' in charged)) throw new Error('it was not charged')
  disk.isFull = true
  // What was held back can be given back.
  await charged.refund()
  disk.isFull = false
  t.match(await charging.charge(header, item.length, uploader), { winc: '5' })
  t.strictSame(calls, ['reserve', 'withdraw', 'reserve'])
  closing.abort()
  const next = new AbortController()
  t.teardown(() => next.abort())
  new CreditCharging(
    pools,
    credits,
    disk.environment,
    oldItems(disk.environment),
    systemClock,
    next.signal,
  ).refundAbandoned()
  await eventually('four calls', () => calls.length === 4)
  t.equal(calls.at(-1), 'withdraw', 'word of the second time was not lost')
})

t.test('what was told of is not told again because a transaction had to run twice', async (t) => {
  const disk = diskOf(t)
  const uploads = new Uploads(disk.environment)
  const heard: string[] = []
  const announce = ({ id }: Receipt): void => void heard.push(id)
  const make = (): ReceiptNews => new ReceiptNews({ environment: disk.environment, uploads, announce })
  const news = make()
  const accept = (at: number): void => {
    let written = (): void => undefined
    uploads.accept([acceptedItem(at)], () => {
      written = news.add([acceptedItem(at).id])
    })
    written()
  }
  accept(1)
  news.announce({ id: acceptedItem(1).id } as Receipt, acceptedItem(1))
  disk.isFull = true
  t.throws(() => accept(2))
  disk.isFull = false
  accept(2)
  heard.length = 0
  await make().catchUp(async ({ id }) => ({ id }) as Receipt)
  t.strictSame(heard, [acceptedItem(2).id], 'the first one was told, and that is written down')
})

t.test('heights that come wait in one place, and the last one is kept', async (t) => {
  const disk = diskOf(t)
  const uploads = new Uploads(disk.environment)
  const closing = new AbortController()
  let now = 1
  const chain = { height: async () => now++ }
  const height = new Height(chain, uploads, systemClock, closing.signal, silentLog)
  await height.start(5)
  disk.isFull = true
  const before = now
  await eventually('fifty blocks later', () => now > before + 50)
  t.ok(disk.undone < 5, `one of them tries, and not each: ${disk.undone}`)
  t.ok((height.known ?? 0) > before + 40, 'uploads go by the newest all the same')
  disk.isFull = false
  await eventually('the height is written down', () => Number(uploads.value('height')) > before + 40)
  closing.abort()
})

t.test('a start on a full disk does not wait for room', async (t) => {
  const disk = diskOf(t)
  const closing = new AbortController()
  disk.isFull = true
  const uploads = new Uploads(disk.environment)
  const height = new Height({ height: async () => 9 }, uploads, systemClock, closing.signal, silentLog)
  await height.start(60_000)
  t.equal(height.known, 9)
  t.ok(disk.undone > 0, 'nothing could be written')
  closing.abort()
})

t.test('a chain that answers slowly is asked one question at a time', async (t) => {
  const uploads = new Uploads(diskOf(t).environment)
  const closing = new AbortController()
  let [open, most] = [0, 0]
  const chain = {
    height: async () => {
      open += 1
      most = Math.max(most, open)
      await pause(50)
      open -= 1
      return 7
    },
  }
  await new Height(chain, uploads, systemClock, closing.signal, silentLog).start(5)
  await pause(200)
  closing.abort()
  t.equal(most, 1)
})

t.test('a height is requested once more where news come while a node answers', async (t) => {
  const uploads = new Uploads(diskOf(t).environment)
  const closing = new AbortController()
  let heard = (): void => undefined
  let [now, open, requests] = [7, 0, 0]
  const chain = {
    height: async () => {
      const answer = now
      requests += 1
      open += 1
      t.equal(open, 1, 'one question at a time')
      await pause(10)
      open -= 1
      return answer
    },
  }
  let isClosed = false
  const height = new Height(chain, uploads, systemClock, closing.signal, silentLog)
  await height.start(3_600_000, (act) => {
    heard = act
    return {
      close: () => {
        isClosed = true
      },
    }
  })
  t.equal(height.known, 7)
  now = 8
  heard()
  now = 9
  heard()
  heard()
  await eventually('the height of the last news', () => height.known === 9)
  t.equal(requests, 3)
  closing.abort()
  t.ok(isClosed)
})

/** The service on a disk. All items are free. */
function serviceOn(disk: FailingDisk, closing: AbortSignal, clock: Clock = systemClock): ItemIntake {
  const uploads = new Uploads(disk.environment)
  const { environment } = uploads
  const pools = new FreePools(environment, allFree)
  return new ItemIntake({
    uploads,
    closing,
    clock,
    logger: silentLog,
    height: () => 1,
    scan: { scan: async () => () => undefined, drop: async () => undefined, accepted: () => undefined },
    verdicts: { verdictNow: async () => true },
    charging: new CreditCharging(
      pools,
      endlessCredits().credits,
      environment,
      oldItems(disk.environment),
      systemClock,
      closing,
    ),
    announcer: new ItemAnnouncer(undefined, closing),
    openSales: new OpenSales({
      sales: new Sales(environment),
      clock: systemClock,
      logger: silentLog,
      itemLog: { folder: '', release: () => undefined },
    }),
    signing: { receipt: async () => new Uint8Array(512), isBehind: false },
    terms: { public: '', dataCaches: [], fastFinalityIndexes: [] },
  })
}

function send(intake: ItemIntake, item: Uint8Array): Promise<UploadAnswer> {
  const reader = new ItemReader(false, new Set())
  reader.push(item)
  const read = reader.finish()
  if (isRefusal(read)) throw new Error('the item of this test is none')
  const spooled = { appendToLog: async () => ({ file: 1, offset: 0, sizeBytes: item.length }) }
  return intake.take(read, spooled, uploader)
}

t.test('an item of which the log says all has its receipt though the tables take nothing', async (t) => {
  const disk = diskOf(t)
  const closing = new AbortController()
  const intake = serviceOn(disk, closing.signal)
  disk.isFull = true
  t.match(await send(intake, item), { status: 200, json: { id: header.id } })
  t.match(await send(intake, item), { status: 202, json: { id: header.id } }, 'and is known')
  await eventually('a write was undone', () => disk.undone > 0)
  disk.isFull = false
  const { uploads, pools } = tablesOf(disk)
  await eventually('the item is found', () => uploads.find(header.id) !== undefined)
  t.strictSame([...uploads.oldest(9)], [header.id])
  t.equal(pools.left(normalizedAddress(header.owner)), 1e6 - item.length, 'its free bytes are counted, once')
  closing.abort()
  await intake.stopped()
})

/** As another thread reads them. */
function tablesOf({ environment }: FailingDisk): { readonly uploads: Uploads; readonly pools: FreePools } {
  return { uploads: new Uploads(environment), pools: new FreePools(environment, allFree) }
}

t.test('nobody waits for ever for a disk that stays full', async (t) => {
  const disk = diskOf(t)
  const closing = new AbortController()
  const clock = new HandClock()
  const service = serviceOn(disk, closing.signal, clock)
  disk.isFull = true
  const answered = send(service, bundle)
  await eventually('a write was undone', () => disk.undone > 0)
  await clock.turn(5000)
  t.match(
    await answered,
    { status: 200, json: { id: headerOf(bundle).id } },
    'the log has it: that is enough for a receipt',
  )
  t.match(await send(service, bundle), { status: 202 })
  disk.isFull = false
  await eventually(
    'the bundle is found',
    () => tablesOf(disk).uploads.find(headerOf(bundle).id) !== undefined,
  )
  closing.abort()
  await service.stopped()
})

t.test('no more is accepted than may wait for the disk', async (t) => {
  const disk = diskOf(t)
  const closing = new AbortController()
  const service = serviceOn(disk, closing.signal)
  disk.isFull = true
  const signer = ed25519Signer(Buffer.alloc(32, 8))
  const one = (at: number): Promise<UploadAnswer> =>
    send(service, signItem(signer, {}, Buffer.from(String(at))))
  await Promise.all(Array.from({ length: 1000 }, (_, at) => one(at)))
  await eventually('a write was undone', () => disk.undone > 0)
  t.match(await one(1000), { status: 503, text: /disk is full/ })
  disk.isFull = false
  await eventually('an upload is accepted again', async () => (await one(1000)).status === 200)
  closing.abort()
  await service.stopped()
})

t.test('a bundle whose uploader waits when the service ends is told so, and has it afterwards', async (t) => {
  const disk = diskOf(t)
  const closing = new AbortController()
  disk.isFull = true
  const answered = send(serviceOn(disk, closing.signal), bundle)
  await eventually('a write was undone', () => disk.undone > 0)
  t.notOk(await endsWithin(answered, 50), 'it is kept already, so that it waits for the disk')
  closing.abort()
  t.match((await answered) as UploadAnswer, { status: 503, text: /ending/ })
  disk.isFull = false
  const next = new AbortController()
  t.match(await send(serviceOn(disk, next.signal), bundle), { status: 200 })
  next.abort()
})

t.test('what a full disk does not take of uploads in parts is not written behind the end', async (t) => {
  const sound = openUploadTables(t.testdir())
  const disk = failingDisk(sound)
  const records = new MultipartRecords(disk.environment, systemClock, 5)
  disk.isFull = true
  records.put({ id: 'one', chunkBytes: 0, createdMs: 0, changedMs: 0, state: 'open' })
  await t.rejects(records.written(), { code: 'ENOSPC' })
  await records.close()
  const tried = disk.undone
  await sound.close()
  disk.isFull = false
  await pause(50)
  t.equal(disk.undone, tried)
  t.match(records.find('one'), { state: 'open' })
})
