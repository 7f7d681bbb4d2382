import type { Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { migrateCluster } from '../../src/cluster/cluster-schema.js'
import { PostgresFree, type PostgresFreeOptions } from '../../src/cluster/postgres-free.js'
import { PostgresSessions } from '../../src/ledger/postgres-session.js'
import { FreePools, type FreeReservation } from '../../src/upload/records/free-pools.js'
import { openUploadTables } from '../../src/upload/records/uploads.js'
import { freeRulesOfTests } from '../conformance/free-bytes.js'
import { scratch } from '../scratch.js'

/** A machine that counts free bytes with others. */
export interface FreeMachine {
  readonly folder: string
  readonly pools: FreePools
  readonly free: PostgresFree
  keep(taken: FreeReservation): void
  /** `isKilled`: nothing more is written into the database. */
  close(isKilled?: boolean): Promise<void>
}

export async function freeMachine(
  t: Test,
  url: string,
  more: Partial<PostgresFreeOptions> & { readonly folder?: string; readonly isMigrated?: boolean } = {},
): Promise<FreeMachine> {
  // On a busy machine nobody is to be taken for away.
  const { folder = scratch('free'), isMigrated = false, patienceMs = 10_000, ...rest } = more
  if (!isMigrated) {
    const sessions = new PostgresSessions(url, 1, 10_000)
    await migrateCluster(sessions)
    await sessions.close()
  }
  const environment = openUploadTables(folder)
  const pools = new FreePools(environment, freeRulesOfTests)
  const own = {
    own: (key: string) => pools.own(key),
    keysBehind: (after: string, limit: number) => pools.keysBehind(after, limit),
  }
  const options = { store: pools.store(), clock: systemClock, log: silentLog, patienceMs, ...rest }
  const free = new PostgresFree({ databaseUrl: url, own, ...options })
  pools.shareWith(free)
  let isClosed = false
  const close = async (isKilled = false): Promise<void> => {
    if (isClosed) return
    isClosed = true
    await free.close(isKilled)
    await environment.close()
  }
  t.teardown(() => close(true))
  return { folder, pools, free, keep: (taken) => environment.write(() => pools.record(taken)), close }
}
