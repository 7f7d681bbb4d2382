/** Uploads in parts that are paid for at their beginning: their money is spent once, for what was accepted, or given back. */

import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { type Clock, systemClock } from '../../../src/actor/clock.js'
import { HeldMemory } from '../../../src/actor/held-memory.js'
import { silentLog } from '../../../src/actor/log.js'
import type { Id } from '../../../src/format/id.js'
import { parseItemHeader } from '../../../src/format/item.js'
import { isRefusal } from '../../../src/format/refusal.js'
import type { BodySink } from '../../../src/http/exchange.js'
import { ed25519Signer, signItem } from '../../../src/proof/sign.js'
import { DurableLog } from '../../../src/store/segments/durable-log.js'
import type { AcceptTerms } from '../../../src/upload/intake/accept-terms.js'
import type { ReadItem } from '../../../src/upload/intake/item-reader.js'
import { Multipart } from '../../../src/upload/parts/multipart.js'
import type { MultipartRecord } from '../../../src/upload/parts/multipart-record.js'
import { MultipartRecords } from '../../../src/upload/parts/multipart-records.js'
import { OpenUploads, type OpenUploadsParts } from '../../../src/upload/parts/open-uploads.js'
import { PaidParts, type PaidPartsParts } from '../../../src/upload/parts/paid-parts.js'
import { PartFiles } from '../../../src/upload/parts/part-files.js'
import { openUploadTables, Uploads } from '../../../src/upload/records/uploads.js'
import {
  fixedAnswers,
  jsonAnswer,
  textAnswer,
  type UploadAnswer,
} from '../../../src/upload/requests/upload-answers.js'
import { HeldRoom, sharesOfParts, sharesOfRequests } from '../../../src/upload/room/held-room.js'
import { eventually } from '../../eventually.js'
import { requestOf } from '../upload-rig.js'

const item = signItem(ed25519Signer(Buffer.alloc(32, 7)), {}, Buffer.from('in parts'))
const upload = 'paid-at-its-beginning'
const disk = { leftBytes: 1e15, expect: () => undefined }
const logOptions = { fileBytes: 2 ** 20, sharedMaxBytes: 1024, growBytes: 2 ** 16 }

interface Scene {
  /** Puts it together once. */
  attempt(): Promise<UploadAnswer>
  /** The record as clients see it. */
  find(): MultipartRecord | undefined
  /** Replaces its only part. */
  readonly partPath: string
  readonly open: OpenUploads
  /** Its place goes to another. */
  giveUp(): void
  /** Time goes on, and what is due is looked at. */
  pass(ms: number): void
  readonly uploads: Uploads
  /** What was ordered for the money. */
  readonly ended: string[]
}

/** `accept`: what becomes of the item, in turn. `before`: what an earlier process has left. */
async function scene(
  t: Test,
  accept: (scene: Scene, item: ReadItem, how: AcceptTerms) => Promise<UploadAnswer>,
  before: (scene: Pick<Scene, 'uploads'>) => void = () => undefined,
  openFiles: (folder: string) => PartFiles = (folder) => new PartFiles(folder),
): Promise<Scene> {
  let aheadMs = 0
  let sweep = (): void => undefined
  const clock: Clock = {
    ...systemClock,
    now: () => systemClock.now() + aheadMs,
    monotonic: () => systemClock.monotonic() + aheadMs,
    every: (_, act) => {
      sweep = act
      return { cancel: () => undefined }
    },
  }
  const folder = t.testdir()
  const environment = openUploadTables(join(folder, 'tables'))
  const records = new MultipartRecords(environment, systemClock)
  const log = await DurableLog.open(join(folder, 'log'), logOptions, () => undefined)
  const files = openFiles(join(folder, 'parts'))
  const facts = { winc: '1000', transaction: '0x', payer: '0x', network: 'base', lines: '' }
  const paid = { payment: 'p', bytes: item.length, facts }
  const record = { id: upload, chunkBytes: 5_242_880, state: 'open', paid } as const
  records.put({ ...record, createdMs: systemClock.now(), changedMs: 0 } satisfies MultipartRecord)
  await records.written()
  mkdirSync(dirname(files.path(upload, 0)), { recursive: true })
  writeFileSync(files.path(upload, 0), item)
  const ended: string[] = []
  const uploads = new Uploads(environment)
  before({ uploads })
  const money = new PaidParts({
    usdcUploads: {} as PaidPartsParts['usdcUploads'],
    usdc: {
      outcome: async () => ({ paid: false, state: 'open' }),
      finish: async ({ bytes }) => {
        ended.push(`spent for ${bytes} bytes`)
        return { status: 'confirmed', winc: '1000', refundWinc: '0' }
      },
    },
    credits: {
      refund: async () => {
        ended.push('given back')
        return { winc: '1000' }
      },
    },
    records,
    uploads,
    secret: Buffer.alloc(32),
    itemMaxBytes: 1e9,
    clock,
  })
  const taking = (read: ReadItem, _: unknown, __: unknown, how: AcceptTerms): Promise<UploadAnswer> =>
    accept(made, read, how)
  const open = new OpenUploads({
    intake: {
      take: taking,
      foresee: async () => undefined,
      receipt: async ({ id }: { readonly id: Id }) => ({ id }),
    } as unknown as OpenUploadsParts['intake'],
    itemLog: log,
    itemMaxBytes: 1e9,
    blockedOwners: new Set(),
    noRoomFor: () => undefined,
    arriving: new HeldRoom({ ...sharesOfRequests, disk }),
    memory: new HeldMemory(1e9),
    uploads,
    records,
    files,
    partsRoom: new HeldRoom({ ...sharesOfParts, placesMax: 10, maxBytes: 1e12, disk }),
    paid: money,
    clock,
    logger: silentLog,
  })
  const made: Scene = {
    uploads,
    ended,
    find: () => open.find(upload),
    partPath: files.path(upload, 0),
    open,
    pass(ms) {
      aheadMs += ms
      sweep()
    },
    giveUp: () => open.live(upload)?.holder.terms.drop(),
    async attempt() {
      const live = open.live(upload)
      if (live === undefined) throw new Error('it is over')
      return open.finish(upload, live, { address: undefined, token: undefined, paidBy: [] })
    },
  }
  t.teardown(async () => {
    await open.close()
    await log.close()
    await environment.close()
  })
  return made
}

/** Writes down an accepted item. */
function enter({ uploads }: Pick<Scene, 'uploads'>, id: Id, heldAs: string | undefined): void {
  const place = { file: 1, offset: 0, sizeBytes: item.length }
  const times = { receivedMs: 1, deadlineHeight: 1, headerSize: 1 }
  const paid = heldAs === undefined ? {} : { heldAs }
  uploads.accept([{ id, owner: 'o', winc: '1000', place, ...times, ...paid } as never], () => undefined)
}

const lost = textAnswer(503, 'The item is kept: the same upload has its receipt when there is room')

t.test('an upload whose answer was lost pays for the item that it has made', async (t) => {
  let attempts = 0
  const one = await scene(t, async (scene, { header }, { charge }) => {
    attempts += 1
    if (attempts === 1) {
      enter(scene, header.id, charge?.heldAs)
      return lost
    }
    await charge?.refund()
    return jsonAnswer(202, { id: header.id })
  })
  t.equal((await one.attempt()).status, 503)
  t.strictSame(one.ended, [])
  t.equal((await one.attempt()).status, 200)
  await eventually('the payment has ended', async () => one.ended.length > 0)
  t.strictSame(one.ended, [`spent for ${item.length} bytes`])
})

t.test('an item that others have paid for costs nothing', async (t) => {
  const one = await scene(t, async (scene, { header }, { charge }) => {
    enter(scene, header.id, undefined)
    await charge?.refund()
    return jsonAnswer(202, { id: header.id })
  })
  t.equal((await one.attempt()).status, 200)
  await eventually('the payment has ended', async () => one.ended.length > 0)
  t.strictSame(one.ended, ['given back'])
})

t.test('what was given back pays for nothing more', async (t) => {
  const paid: boolean[] = []
  const one = await scene(t, async (scene, { header }, { charge }) => {
    paid.push(charge !== undefined)
    if (paid.length === 1) return fixedAnswers.unpaid
    enter(scene, header.id, charge?.heldAs)
    return jsonAnswer(200, { id: header.id })
  })
  t.equal((await one.attempt()).status, 402)
  await eventually('the payment has ended', async () => one.ended.length > 0)
  const foresee = await one.attempt()
  t.equal(foresee.status, 200)
  t.strictSame(paid, [true, false], 'credits pay')
  t.strictSame(one.ended, ['given back'])
})

const never = async (): Promise<UploadAnswer> => {
  throw new Error('nothing is put together in this test')
}
const header = parseItemHeader(item)
if (header === 'more' || isRefusal(header)) throw new Error('no item')
const spent = `spent for ${item.length} bytes`

t.test('an item that was accepted before a stop is what the upload has paid for', async (t) => {
  const one = await scene(t, never, (before) => enter(before, header.id, upload))
  t.match(one.find(), { state: 'finalized', itemId: header.id })
  await eventually('the payment has ended', async () => one.ended.length > 0)
  one.pass(25 * 3600_000)
  t.equal(one.find(), undefined)
  t.strictSame(one.ended, [spent])
})

t.test('an item that is accepted after its answer is what the upload has paid for', async (t) => {
  const one = await scene(t, async () => lost)
  t.equal((await one.attempt()).status, 503)
  t.match(one.find(), { state: 'open' })
  enter(one, header.id, upload)
  one.pass(25 * 3600_000)
  await eventually('the payment has ended', async () => {
    // A look that comes while the upload is still in use finds nothing to do.
    one.pass(0)
    return one.ended.length > 0
  })
  t.strictSame(one.ended, [spent])
})

t.test('an upload whose item was accepted pays for no other one', async (t) => {
  const accepted: Id[] = []
  const one = await scene(t, async (scene, { header }, { charge }) => {
    accepted.push(header.id)
    enter(scene, header.id, charge?.heldAs)
    return lost
  })
  t.equal((await one.attempt()).status, 503)
  writeFileSync(one.partPath, signItem(ed25519Signer(Buffer.alloc(32, 8)), {}, Buffer.from('another')))
  t.match(await one.attempt(), { status: 200, json: { id: header.id } })
  await eventually('the payment has ended', async () => one.ended.length > 0)
  t.strictSame(accepted, [header.id])
  t.strictSame(one.ended, [spent])
})

t.test('what was ordered to be given back is not, where an item was accepted for it', async (t) => {
  const one = await scene(t, async (scene, { header }, { charge }) => {
    enter(scene, header.id, charge?.heldAs)
    return fixedAnswers.invalidItem
  })
  t.equal((await one.attempt()).status, 400)
  await eventually('the payment has ended', async () => one.ended.length > 0)
  t.strictSame(one.ended, [spent])
})

t.test('an upload that nothing was accepted for is given back when it is over', async (t) => {
  const one = await scene(t, never)
  one.pass(25 * 3600_000)
  await eventually('the payment has ended', async () => {
    // A look that comes while the upload is still in use finds nothing to do.
    one.pass(0)
    return one.ended.length > 0
  })
  t.strictSame(one.ended, ['given back'])
})

t.test('what was paid for an upload that gives up its place becomes credits', async (t) => {
  const one = await scene(t, never)
  one.giveUp()
  await eventually('the payment has ended', async () => one.ended.length > 0)
  t.match(one.find(), { state: 'invalid', answer: { status: 410 } })
  await t.rejects(one.attempt(), /over/)
  one.pass(25 * 3600_000)
  t.strictSame(one.ended, ['given back'])
})

t.test('what has made an item gives its place up, and not its payment', async (t) => {
  const one = await scene(t, async () => lost)
  t.equal((await one.attempt()).status, 503)
  enter(one, header.id, upload)
  one.giveUp()
  await eventually('the payment has ended', async () => one.ended.length > 0)
  t.strictSame(one.ended, [spent])
})

t.test('parts that are larger than they are listed are not accepted', async (t) => {
  const one = await scene(t, never)
  writeFileSync(
    one.partPath,
    signItem(ed25519Signer(Buffer.alloc(32, 7)), {}, Buffer.from('in larger parts')),
  )
  t.match(await one.attempt(), { status: 503, text: 'Parts changed while they were read' })
  t.strictSame(one.ended, [])
})

t.test('nor is more than what was paid for', async (t) => {
  const one = await scene(t, never)
  one.open.live(upload)?.chunks.set(item.length, 1)
  t.match(await one.attempt(), { status: 400, text: /larger than the/ })
  await eventually('the payment has ended', async () => one.ended.length > 0)
  t.strictSame(one.ended, ['given back'])
})

t.test('a part that is being kept while the end is ordered is waited for', async (t) => {
  let keep = (): void => undefined
  const slow = new Promise<void>((resolve) => {
    keep = resolve
  })
  class SlowFiles extends PartFiles {
    override draft(id: string): ReturnType<PartFiles['draft']> {
      const draft = super.draft(id)
      if (isRefusal(draft)) return draft
      const real = draft.keep.bind(draft)
      draft.keep = (offset) => slow.then(() => real(offset))
      return draft
    }
  }
  const one = await scene(t, never, undefined, (folder) => new SlowFiles(folder))
  const parts = new Multipart(one.open)
  one.open.live(upload)?.chunks.set(0, 1)
  one.open.live(upload)?.chunks.set(1, item.length - 1)
  let sink: BodySink | undefined
  const request = requestOf('POST', `/chunks/arweave/${upload}/0`, {
    headers: { 'content-length': String(item.length) },
  })
  const arriving = parts.chunk(
    {
      ...request,
      stream: (taken) => {
        sink = taken
        return { pause: () => undefined, resume: () => undefined }
      },
    },
    upload,
    '0',
  )
  sink?.piece(item)
  sink?.over(undefined)
  await eventually('it is being kept', async () => one.open.live(upload)?.keeping.size === 1)
  const early = one.attempt()
  const ending = parts.finalize(upload, { address: undefined, token: undefined, paidBy: [] }, true)
  keep()
  t.equal((await arriving).status, 200)
  // The parts overlap now: their sum is above what was paid.
  for (const answer of [await early, await ending])
    t.match(answer, { status: 400, text: /not (in exactly|whole)/ })
})
