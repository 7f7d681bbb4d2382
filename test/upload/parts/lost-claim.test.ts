import t from 'tap'
import { type Clock, systemClock } from '../../../src/actor/clock.js'
import { silentLog } from '../../../src/actor/log.js'
import { EngineAway } from '../../../src/cluster/engine-away.js'
import type { PostgresUploads } from '../../../src/cluster/postgres-uploads.js'
import { refuse } from '../../../src/format/refusal.js'
import { SharedRecords } from '../../../src/upload/parts/shared-records.js'

t.test('a claim whose record was not written is not kept up', async (t) => {
  const acts: (() => void)[] = []
  const every = (_: number, act: () => void): ReturnType<Clock['every']> => {
    acts.push(act)
    return { cancel: () => undefined }
  }
  const row = { id: 'upload', version: 1, body: '{"id":"upload"}', writer: 0, parts: [], cut: 0, seq: 0 }
  let isAway = true
  const stayed: string[] = []
  const uploads = {
    load: async () => ({ ...row, claimedBy: undefined, nowMs: systemClock.now() }),
    claim: async () => 1,
    updateClaimed: async () => {
      if (isAway) throw new EngineAway(refuse('busy', 'self', 'PostgreSQL does not answer'))
      return 2
    },
    stay: async (ids: readonly string[]) => void stayed.push(...ids),
    close: async () => undefined,
  } as unknown as PostgresUploads
  const records = new SharedRecords(uploads, async () => false, { ...systemClock, every }, silentLog)
  const uploader = { address: undefined, token: undefined, paidBy: [] }
  await t.rejects(records.claim('upload', uploader), EngineAway)
  for (const act of acts) act()
  t.strictSame(stayed, [], 'it ends, so that any machine may claim it')
  isAway = false
  t.equal(await records.claim('upload', uploader), 'ours')
  for (const act of acts) act()
  t.strictSame(stayed, ['upload'])
  await records.close()
})
