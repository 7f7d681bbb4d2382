/** Ends of uploads of many networks: who waits for gateways, or is refused, keeps nobody else from anything. */

import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { pause, systemClock } from '../../../src/actor/clock.js'
import { HeldMemory } from '../../../src/actor/held-memory.js'
import { silentLog } from '../../../src/actor/log.js'
import type { Id } from '../../../src/format/id.js'
import { parseItemHeader } from '../../../src/format/item.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { ed25519Signer, signItem } from '../../../src/proof/sign.js'
import { DurableLog } from '../../../src/store/segments/durable-log.js'
import type { ReadItem } from '../../../src/upload/intake/item-reader.js'
import type { MultipartRecord } from '../../../src/upload/parts/multipart-record.js'
import { MultipartRecords } from '../../../src/upload/parts/multipart-records.js'
import { OpenUploads, type OpenUploadsParts } from '../../../src/upload/parts/open-uploads.js'
import { PartFiles } from '../../../src/upload/parts/part-files.js'
import { openUploadTables, Uploads } from '../../../src/upload/records/uploads.js'
import { jsonAnswer, textAnswer, type UploadAnswer } from '../../../src/upload/requests/upload-answers.js'
import { HeldRoom, sharesOfParts, sharesOfRequests } from '../../../src/upload/room/held-room.js'
import { eventually } from '../../eventually.js'

const disk = { leftBytes: 1e15, expect: () => undefined }
const logOptions = { fileBytes: 2 ** 24, sharedMaxBytes: 1024, growBytes: 2 ** 20 }
const uploader = { address: undefined, token: undefined, paidBy: [] }
const honest = '203.0.113.7'

interface Scene {
  readonly open: OpenUploads
  /** An upload with one part, which is a whole item. */
  begun(client: string, item?: Uint8Array): MultipartRecord
}

type Intake = Partial<Pick<OpenUploadsParts['intake'], 'take' | 'foresee'>>

/** `accept`: what becomes of items. */
async function sceneOf(t: Test, intake: Intake, placesMax = 1000): Promise<Scene> {
  const folder = t.testdir()
  const environment = openUploadTables(join(folder, 'tables'))
  const log = await DurableLog.open(join(folder, 'log'), logOptions, () => undefined)
  const files = new PartFiles(join(folder, 'parts'))
  const open = new OpenUploads({
    intake: {
      take: async ({ header }: ReadItem) => jsonAnswer(200, { id: header.id }),
      foresee: async () => undefined,
      receipt: async ({ id }: { readonly id: Id }) => ({ id }),
      ...intake,
    } as unknown as OpenUploadsParts['intake'],
    itemLog: log,
    itemMaxBytes: 1e9,
    blockedOwners: new Set(),
    noRoomFor: () => undefined,
    arriving: new HeldRoom({ ...sharesOfRequests, disk }),
    memory: new HeldMemory(1e9),
    uploads: new Uploads(environment),
    records: new MultipartRecords(environment, systemClock),
    files,
    partsRoom: new HeldRoom({ ...sharesOfParts, placesMax, maxBytes: 1e12, disk }),
    clock: systemClock,
    logger: silentLog,
  })
  t.teardown(async () => {
    await open.close()
    await log.close()
    await environment.close()
  })
  const begun = (client: string, item: Uint8Array = itemOf(client)): MultipartRecord => {
    const record = open.begin({ chunkBytes: 5_242_880, client })
    if ('status' in record) throw new Error(`it was not begun: ${record.text}`)
    const path = files.path(record.id, 0)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, item)
    const live = open.live(record.id)
    if (live === undefined) throw new Error('it is not open')
    open.occupy(live, item.length, 1)
    open.partStored(live, 0, item.length)
    return record
  }
  return { open, begun }
}

let items = 0

function itemOf(text: string): Uint8Array {
  items += 1
  return signItem(ed25519Signer(Buffer.alloc(32, 7)), {}, Buffer.from(`${text} ${items}`))
}

async function attempted({ open }: Scene, { id }: MultipartRecord): Promise<UploadAnswer> {
  const live = open.live(id)
  return live === undefined ? textAnswer(404, 'gone') : open.finish(id, live, uploader)
}

for (const networks of [1, 200])
  t.test(`200 uploads of ${networks} networks that wait for gateways delay nobody for long`, async (t) => {
    const clients = new Map<string, string>()
    const scene = await sceneOf(t, {
      take: async ({ header: { id } }) => {
        if (clients.get(id) !== honest) await pause(1000)
        return jsonAnswer(200, { id })
      },
    })
    const begin = (client: string): MultipartRecord => {
      const item = itemOf(client)
      const header = parseItemHeader(item)
      if (header === 'more' || isRefusal(header)) throw new Error('it is no item')
      clients.set(header.id, client)
      return scene.begun(client, item)
    }
    let ended = 0
    const crowd = Array.from({ length: 200 }, (_, at) =>
      attempted(scene, begin(networks === 1 ? `198.51.100.${at}` : `${11 + at}.1.7.9`)).finally(() => {
        ended += 1
      }),
    )
    t.match(await attempted(scene, begin(honest)), { status: 200 })
    t.ok(ended < 150, `${ended} before it`)
    for (const one of crowd) t.match(await one, { status: 200 })
  })

t.test('who waits for the payment service does not keep others from being read', async (t) => {
  let go = (): void => undefined
  const answered = new Promise<void>((resolve) => {
    go = resolve
  })
  let looked = 0
  const scene = await sceneOf(t, {
    foresee: async () => {
      looked += 1
      if (looked <= 10) await answered
      return undefined
    },
  })
  const slow = Array.from({ length: 10 }, (_, at) => attempted(scene, scene.begun(`198.51.100.${at}`)))
  t.ok(await eventually('all are looked for', () => looked === 10))
  t.match(await attempted(scene, scene.begun(honest)), { status: 200 })
  go()
  for (const one of slow) t.match(await one, { status: 200 })
})

t.test('uploads that are refused again and again leave places for others', async (t) => {
  const placesMax = 40
  const tried = new Set<string>()
  const never = textAnswer(503, 'too many items of this wallet came from this network')
  const intake: Intake = {
    take: async ({ header: { id } }) => {
      tried.add(id)
      return never
    },
  }
  const scene = await sceneOf(t, intake, placesMax)
  const { open } = scene
  const crowd = Array.from({ length: placesMax }, (_, at) => scene.begun(`11.22.33.${at % 12}`))
  for (const { id } of crowd) open.finishUntilDecided(id, uploader)
  t.ok(await eventually('all were tried', () => tried.size === placesMax))
  await pause(100)
  const friend = open.begin({ chunkBytes: 5_242_880, client: honest })
  if ('status' in friend) throw new Error(`no place: ${friend.text}`)
  const live = open.live(friend.id)
  t.ok(live !== undefined && open.occupy(live, 5_242_880, 1) === undefined)
  for (let at = 0; at < 100; at += 1) {
    const begun = open.begin({ chunkBytes: 5_242_880, client: `11.22.33.${at % 12}` })
    if ('id' in begun) open.finishUntilDecided(begun.id, uploader)
  }
  t.equal(open.live(friend.id), live, 'nor does a stranger take what was found')
  t.equal(open.listed(0).open, placesMax)
})

t.test('what is dropped while it waits for its place is not put together', async (t) => {
  let go = (): void => undefined
  const answered = new Promise<void>((resolve) => {
    go = resolve
  })
  let accepted = 0
  const accept = async ({ header: { id } }: ReadItem): Promise<UploadAnswer> => {
    accepted += 1
    await answered
    return jsonAnswer(200, { id })
  }
  const scene = await sceneOf(t, { take: accept })
  const network = '198.51.100.1'
  const crowd = Array.from({ length: 64 }, () => attempted(scene, scene.begun(network)))
  t.ok(await eventually('all places of one network are taken', () => accepted === 64))
  const late = scene.begun(network)
  const attempt = attempted(scene, late)
  scene.open.drop(late.id)
  go()
  t.match(await attempt, { status: 404 })
  for (const one of crowd) t.match(await one, { status: 200 })
  t.equal(accepted, 64)
})
