/** Uploads in parts that are paid for at their beginning: their money is spent once, for what was accepted, or given back. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { silentLog } from '../../../src/actor/log.js'
import type { Id } from '../../../src/format/id.js'
import { ed25519Signer, signItem } from '../../../src/proof/sign.js'
import { DurableLog } from '../../../src/store/segments/durable-log.js'
import {
  fixedAnswers,
  jsonAnswer,
  textAnswer,
  type UploadAnswer,
} from '../../../src/upload/calls/upload-answers.js'
import type { TakeTerms } from '../../../src/upload/intake/item-intake.js'
import type { ReadItem } from '../../../src/upload/intake/item-reader.js'
import { type MultipartRecord, MultipartRecords } from '../../../src/upload/parts/multipart-records.js'
import { OpenUploads, type OpenUploadsParts } from '../../../src/upload/parts/open-uploads.js'
import { PaidParts, type PaidPartsParts } from '../../../src/upload/parts/paid-parts.js'
import { PartFiles } from '../../../src/upload/parts/part-files.js'
import { openUploadTables, Uploads } from '../../../src/upload/records/uploads.js'
import { HeldRoom, sharesOfParts, sharesOfRequests } from '../../../src/upload/room/held-room.js'
import { eventually } from '../../eventually.js'

const item = signItem(ed25519Signer(Buffer.alloc(32, 7)), {}, Buffer.from('in parts'))
const upload = 'paid-at-its-beginning'
const disk = { leftBytes: 1e15, expect: () => undefined }
const logOptions = { fileBytes: 2 ** 20, sharedMaxBytes: 1024, growBytes: 2 ** 16 }

interface Scene {
  /** Puts it together once. */
  attempt(): Promise<UploadAnswer>
  readonly uploads: Uploads
  /** What was ordered for the money. */
  readonly ended: string[]
}

/** `accept`: what becomes of the item, in turn. */
async function scene(
  t: Test,
  accept: (scene: Scene, item: ReadItem, how: TakeTerms) => Promise<UploadAnswer>,
): Promise<Scene> {
  const folder = t.testdir()
  const environment = openUploadTables(join(folder, 'tables'))
  const records = new MultipartRecords(environment, systemClock)
  const log = await DurableLog.open(join(folder, 'log'), logOptions, () => undefined)
  const files = new PartFiles(join(folder, 'parts'))
  const facts = { winc: '1000', transaction: '0x', payer: '0x', network: 'base', lines: '' }
  const paid = { payment: 'p', bytes: item.length, facts }
  const record = { id: upload, chunkBytes: 5_242_880, state: 'open', paid } as const
  records.put({ ...record, createdMs: systemClock.now(), changedMs: 0 } satisfies MultipartRecord)
  await records.written()
  mkdirSync(dirname(files.path(upload, 0)), { recursive: true })
  writeFileSync(files.path(upload, 0), item)
  const ended: string[] = []
  const money = new PaidParts({
    payments: {} as PaidPartsParts['payments'],
    usdc: {
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
    secret: Buffer.alloc(32),
    itemMaxBytes: 1e9,
    clock: systemClock,
  })
  const uploads = new Uploads(environment)
  const taking = (read: ReadItem, _: unknown, __: unknown, how: TakeTerms): Promise<UploadAnswer> =>
    accept(made, read, how)
  const open = new OpenUploads({
    intake: { accept: taking, foresee: async () => undefined } as unknown as OpenUploadsParts['intake'],
    log,
    itemMaxBytes: 1e9,
    blockedOwners: new Set(),
    full: () => undefined,
    arriving: new HeldRoom({ ...sharesOfRequests, disk }),
    uploads,
    records,
    files,
    room: new HeldRoom({ ...sharesOfParts, placesMax: 10, maxBytes: 1e12, disk }),
    paid: money,
    clock: systemClock,
    logger: silentLog,
  })
  const made: Scene = {
    uploads,
    ended,
    async attempt() {
      const live = open.live(upload)
      if (live === undefined) throw new Error('it is over')
      return open.attempt(upload, live, { range: undefined, token: undefined, paidBy: [] })
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
function enter({ uploads }: Scene, id: Id, heldAs: string | undefined): void {
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
    await charge?.giveBack()
    return jsonAnswer(202, { id: header.id })
  })
  t.equal((await one.attempt()).status, 503)
  t.strictSame(one.ended, [])
  t.equal((await one.attempt()).status, 200)
  await eventually(async () => one.ended.length > 0)
  t.strictSame(one.ended, [`spent for ${item.length} bytes`])
})

t.test('an item that others have paid for costs nothing', async (t) => {
  const one = await scene(t, async (scene, { header }, { charge }) => {
    enter(scene, header.id, undefined)
    await charge?.giveBack()
    return jsonAnswer(202, { id: header.id })
  })
  t.equal((await one.attempt()).status, 200)
  await eventually(async () => one.ended.length > 0)
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
  await eventually(async () => one.ended.length > 0)
  const foresee = await one.attempt()
  t.equal(foresee.status, 200)
  t.strictSame(paid, [true, false], 'credits pay')
  t.strictSame(one.ended, ['given back'])
})
