import t from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { silentLog } from '../../../src/actor/log.js'
import type { PostgresUploads } from '../../../src/cluster/postgres-uploads.js'
import { SharedRecords } from '../../../src/upload/parts/shared-records.js'

/** What the clock of the database is ahead of this machine's. */
const aheadMs = 5_000_000

t.test('the time of the database holds also when the clock here is set', async (t) => {
  let offMs = 0
  const clock = { ...systemClock, now: () => systemClock.now() + offMs }
  const theirs = (): number => systemClock.now() + aheadMs
  const row = { version: 1, body: '{}', writer: 0, parts: [], cut: 0, seq: 0, claimedBy: undefined }
  const uploads = {
    load: async (id: string) => ({ ...row, id, nowMs: theirs() }),
    close: async () => undefined,
  } as unknown as PostgresUploads
  const records = new SharedRecords(uploads, async () => false, clock, silentLog)
  await records.load('upload')
  for (const setMs of [600_000, -600_000, 0]) {
    offMs = setMs
    const wrongMs = records.nowMs - theirs()
    t.ok(Math.abs(wrongMs) < 1000, `off by ${wrongMs} ms`)
  }
  await records.close()
})
