import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { migrateCluster } from '../../src/cluster/cluster-schema.js'
import { PostgresUploads } from '../../src/cluster/postgres-uploads.js'
import { PostgresSessions } from '../../src/ledger/postgres-session.js'
import type { ObjectStore } from '../../src/source/objects/object-store.js'
import { PartObjects } from '../../src/upload/parts/part-objects.js'
import { SharedRecords } from '../../src/upload/parts/shared-records.js'
import { openUploadTables } from '../../src/upload/records/uploads.js'
import { MemoryObjects } from '../engines/memory-objects.js'
import { postgresFor } from '../engines/two-machines.js'
import { scratch } from '../scratch.js'
import { type RigOptions, type UploadRig, uploadRig } from '../upload/upload-rig.js'

/** A machine of a cluster that takes uploads in parts. */
export interface PartsMachine {
  readonly rig: UploadRig
  readonly records: SharedRecords
  readonly files: PartObjects
  readonly database: PostgresUploads
}

export async function migrated(url: string): Promise<void> {
  const sessions = new PostgresSessions(url, 1, 10_000)
  await migrateCluster(sessions)
  await sessions.close()
}

/** A database that has the tables, by its URL, and a store: both without anything in them. */
export async function emptyEngines(
  t: Test,
): Promise<{ readonly url: string; readonly store: MemoryObjects }> {
  const { url } = await postgresFor(t)
  await migrated(url)
  return { url, store: new MemoryObjects() }
}

/** `url`: of a database with the tables. Everything is closed after the test. */
export async function partsMachine(
  t: Test,
  url: string,
  store: ObjectStore,
  {
    isLeading = false,
    answerMs = 3000,
    ...more
  }: RigOptions & { isLeading?: boolean; answerMs?: number } = {},
): Promise<PartsMachine> {
  const folder = scratch('parts')
  const database = new PostgresUploads(url, randomUUID(), systemClock, answerMs)
  const records = new SharedRecords(database, async () => isLeading, systemClock, silentLog)
  const files = new PartObjects({
    store,
    uploads: database,
    records,
    prefix: 'p',
    folder: join(folder, 'arriving'),
  })
  const environment = openUploadTables(join(folder, 'uploads'))
  t.teardown(() => environment.close())
  const rig = await uploadRig(t, environment, { isRich: true, folder, shared: { records, files }, ...more })
  return { rig, records, files, database }
}
