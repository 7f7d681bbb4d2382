/** Uploads that other machines have left, in the database of a cluster: those that never end keep no others waiting. */
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { PostgresUploads } from '../../src/cluster/postgres-uploads.js'
import { SharedRecords } from '../../src/upload/parts/shared-records.js'
import { postgresAbsent } from '../engines/two-machines.js'
import { emptyEngines } from './parts-rig.js'

t.test('each look goes on behind the last one, and begins anew at the end', postgresAbsent, async (t) => {
  const { url } = await emptyEngines(t)
  const uploads = new PostgresUploads(url, randomUUID(), systemClock)
  const records = new SharedRecords(uploads, async () => true, systemClock, silentLog)
  t.teardown(() => records.close())
  const due = { kind: 0, dueMs: Date.now() + 60_000, takes: false, client: undefined, paid: true }
  const insert = (id: string): Promise<boolean> =>
    uploads.insert(id, { ...due, body: JSON.stringify({ id }), ordered: true, owes: true })
  const all = Array.from({ length: 230 }, (_, at) => `upload-${String(at).padStart(3, '0')}`)
  // Nothing becomes of any of them, and the last one is the last of the table.
  for (const id of all) t.ok(await insert(id))
  for (const round of [1, 2]) {
    const [left, owing] = [new Set<string>(), new Set<string>()]
    for (let looks = 0; looks < 4; looks += 1) {
      const around = await records.lookAround()
      for (const id of around?.left ?? []) left.add(id)
      for (const { id } of around?.owing ?? []) owing.add(id)
      t.ok((around?.left.length ?? 0) <= 64, 'one look is bounded')
    }
    t.strictSame([...left].sort(), all, `all are looked at in round ${round}`)
    t.strictSame([...owing].sort(), all)
  }
})
