/** A start on a full disk, after a kill between the log and the tables. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { silentLog } from '../../../src/actor/log.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { ed25519Signer, signItem } from '../../../src/proof/sign.js'
import { DurableLog } from '../../../src/store/segments/durable-log.js'
import { Sales } from '../../../src/upload/charging/sales.js'
import type { LateItems } from '../../../src/upload/intake/late-items.js'
import { openIntake } from '../../../src/upload/intake/open-intake.js'
import { type LoggedUpload, openUploadTables } from '../../../src/upload/records/uploads.js'
import { acceptedItem } from '../accepted-item.js'
import { failingDisk } from '../failing-disk.js'
import { answered, requestOf, uploadRig } from '../upload-rig.js'
import { salesByHand } from '../usdc-sales.js'

const item = Buffer.from(signItem(ed25519Signer(Buffer.alloc(32, 7)), {}, Buffer.from('another one')))
const metaOf = (at: number): LoggedUpload => {
  const { place: _, ...meta } = acceptedItem(at)
  return meta
}
const facts = { payment: 'p', units: '1', bytes: 16, request: 'r' }
const [paid, unsold] = [
  { ...metaOf(1), winc: '5' },
  { ...metaOf(2), sale: facts },
]

const watching = { log: silentLog, clock: systemClock }

/** A log that a process has left which was killed before it wrote the tables. */
async function leftLog(t: Test): Promise<string> {
  const folder = join(t.testdir(), 'log')
  const log = await DurableLog.open(folder)
  for (const meta of [paid, unsold] as const) {
    const bytes = Buffer.from('bytes of an item')
    const draft = log.draft()
    await draft.write(bytes)
    const digest = createHash('sha256').update(bytes).digest()
    t.notOk(isRefusal(await draft.finish(digest, Buffer.from(JSON.stringify(meta)))))
  }
  await log.close()
  return folder
}

t.test('it starts, sells and accepts nothing, and takes all up when there is room', async (t) => {
  const sound = openUploadTables(t.testdir())
  t.teardown(() => sound.close())
  const disk = failingDisk(sound)
  const sales = salesByHand(t)
  let late: LateItems | undefined
  const rig = await uploadRig(t, disk.environment, {
    ...sales.options,
    late: {
      get refusal() {
        return late?.refusal
      },
    },
  })
  const { environment } = rig.uploads
  const table = new Sales(environment)
  disk.isFull = true
  const entering = { ...watching, uploads: rig.uploads, sales: table, pools: rig.pools }
  const opened = await openIntake(await leftLog(t), entering)
  t.teardown(() => opened.itemLog.close())
  late = opened.late
  t.match(late.refusal, { refused: 'busy' })

  const status = (id: string) => answered(rig, '/tx/{id}/status', requestOf('GET', '/tx/{id}/status'), { id })
  const post = () => answered(rig, '/tx', requestOf('POST', '/tx', { pieces: [item] }))
  t.match(await status(paid.id), { status: 503 }, 'it has a receipt, perhaps')
  // There is room for this moment: it is still not known what was accepted.
  disk.isFull = false
  t.match(await post(), { status: 503 })
  t.match(await sales.ordered(rig, item), { status: 503 })
  t.equal(sales.orders(), 0, 'no money moved')
  disk.isFull = true

  const closing = new AbortController()
  t.teardown(() => closing.abort())
  const entered = late.entered(closing.signal, silentLog)
  t.ok(disk.undone > 1, 'it is tried again')
  t.strictSame(table.open(), [])
  disk.isFull = false
  t.match(await entered, [{ id: paid.id }])
  t.equal(late.refusal, undefined)
  t.match(await status(paid.id), { status: 200 })
  t.equal(environment.table('unsettled').count(), 1, 'it is paid for')
  t.match(table.open(), [{ itemId: unsold.id, payment: 'p' }])
  t.match(await post(), { status: 200 })
  t.match(await status('A'.repeat(43)), { status: 404 })
})

t.test('a start whose tables take changes leaves nothing for later', async (t) => {
  const environment = openUploadTables(t.testdir())
  t.teardown(() => environment.close())
  const rig = await uploadRig(t, environment)
  const entering = { ...rig, ...watching, sales: new Sales(environment) }
  const { itemLog, late, lost } = await openIntake(await leftLog(t), entering)
  t.teardown(() => itemLog.close())
  t.equal(late.refusal, undefined)
  t.match(lost, [{ id: paid.id }])
  t.strictSame(await late.entered(new AbortController().signal, silentLog), [])
})
