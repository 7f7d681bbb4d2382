/** A flood of free items, and one upload that was paid for. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { silentLog } from '../../../src/actor/log.js'
import { type Id, idOfBytes } from '../../../src/format/id.js'
import { sha256 } from '../../../src/proof/digest.js'
import { DurableLog } from '../../../src/store/segments/durable-log.js'
import { Sales } from '../../../src/upload/charging/sales.js'
import { openIntake } from '../../../src/upload/intake/open-intake.js'
import { FreePools, type FreeReservation } from '../../../src/upload/records/free-pools.js'
import { type LoggedUpload, openUploadTables, Uploads } from '../../../src/upload/records/uploads.js'
import { rigOf, rules } from './bundler-rig.js'

const stranger: FreeReservation = { keys: ['w:stranger', 'r:20.1.1.1'], bytes: 1 }

t.test(
  'what is paid for is in the next bundle, however many free items wait and bundles are not deep',
  async (t) => {
    const { uploads, bundles, accept, round } = await rigOf(t)
    for (let at = 0; at < 600; at += 1) accept(`free ${at}`, stranger)
    for (let rounds = 0; rounds < 12; rounds += 1) await round()
    t.ok(bundles.open().length >= 12, 'a bundle that waits for its depth keeps no other back')
    t.ok(bundles.open().filter(({ state }) => state === 'seeded').length >= 11)
    const paid = accept('paid')
    const other = accept('free, of somebody else', { keys: ['w:honest', 'r:30.1.1.1'], bytes: 1 })
    const before = bundles.recent.length
    await round()
    t.ok(uploads.find(paid)?.bundle, 'paid')
    t.ok(uploads.find(other)?.bundle, 'free, and the turn of another')
    // One may have been chosen before they came.
    const next = bundles.recent.slice(0, -before).slice(-2)
    const carrier = next.find(({ id }) => id === uploads.find(paid)?.bundle)
    t.equal(carrier?.items, rules.itemsMax, 'free items fill what is left')
  },
)

t.test('an item that only the log knows waits in the same line as before the kill', async (t) => {
  const folder = t.testdir()
  const environment = openUploadTables(join(folder, 'tables'))
  const uploads = new Uploads(environment)
  const before = await DurableLog.open(join(folder, 'log'))
  const put = (name: string, free?: FreeReservation): Id => {
    const bytes = Buffer.from(name)
    const id = idOfBytes(sha256(bytes))
    const meta: LoggedUpload = {
      id,
      headerSize: 1,
      owner: 'o',
      receivedMs: 1,
      deadlineHeight: 1,
      winc: '0',
      ...(free === undefined ? {} : { free }),
    }
    const digest = createHash('sha256').update(bytes).digest()
    before.append([bytes], digest, Buffer.from(JSON.stringify(meta)))
    return id
  }
  const ids = [put('free', stranger), put('exempt', { keys: [], bytes: 1 }), put('paid')]
  await before.close()
  const free = { itemMaxBytes: 9, walletBytes: 9, rangeBytes: 9, exemptWallets: [] }
  const parts = { uploads, sales: new Sales(environment), pools: new FreePools(environment, free) }
  const { itemLog: log } = await openIntake(join(folder, 'log'), {
    ...parts,
    clock: systemClock,
    log: silentLog,
  })
  t.strictSame([...uploads.freeByTurns(9)], [ids[0]])
  t.strictSame(new Set(uploads.oldestPaid(9)), new Set(ids.slice(1)))
  t.equal(uploads.waiting, 3)
  await log.close()
  await environment.close()
})
