import { systemClock } from '../../actor/clock.js'
import { createLog } from '../../actor/log.js'
import { Meters } from '../../actor/meter.js'
import { meterTable } from '../../actor/meter-table.js'
import { ranks, stepBack } from '../../actor/priority.js'
import type { OpenThread } from '../../actor/run-thread.js'
import { Generations } from '../../catalog/generations.js'
import { ChainIndex } from '../../catalog/index-reader.js'
import { openCatalogTables } from '../../catalog/tables.js'
import { StableWriter, type WriterState } from '../../clickhouse/stable-writer.js'
import { folders } from '../folders.js'
import type { SharedMemory } from '../shared-memory.js'
import type { SettingsOf } from '../thread-settings.js'
import { openClickhouse } from './open-clickhouse.js'

/** What `workers/push.ts` is started with (plain, cloned). */
export interface PushGiven {
  readonly settings: SettingsOf<'push'>
  readonly memory: Pick<SharedMemory, 'generations' | 'meters' | 'rows'>
}

const answerMs = 3000
/** What one machine of all does. */
const work = 'index'

/**
 * Bundles are opened after their block, and what is found in a block that was written already is read by nobody. So a day of
 * blocks stays behind, which each machine has in its own index.
 */
const openingBlocks = 720

/** Whether this machine is the one of its cluster that writes; always where it is in none. */
async function leadsOf(
  databaseUrl: string | undefined,
): Promise<{ leads(): Promise<boolean>; close(): Promise<void> }> {
  if (databaseUrl === undefined) return { leads: async () => true, close: async () => undefined }
  // The client of the database is loaded only where there is one.
  const { PostgresLeads } = await import('../../ledger/postgres-leads.js')
  const leads = new PostgresLeads(databaseUrl, answerMs, systemClock)
  return { leads: () => leads.leads(work), close: () => leads.close() }
}

/** Writes the stable heights of the index of this machine into ClickHouse, where no other machine does. */
export async function openPush({ settings, memory }: PushGiven): Promise<OpenThread> {
  const log = createLog(settings.server.logLevel, 'push')
  stepBack(ranks.background, log)
  const client = openClickhouse(settings)
  if (client === undefined) throw new Error('CLICKHOUSE_PUSH needs CLICKHOUSE_URL')
  const { environment } = openCatalogTables(folders(settings).catalog)
  const index = new ChainIndex(environment, new Generations(memory.generations))
  const lead = await leadsOf(settings.cluster.databaseUrl)
  const writer = new StableWriter({
    client,
    index,
    leads: () => lead.leads(),
    forkDepth: settings.indexing.forkDepthMax + openingBlocks,
    clock: systemClock,
    log,
    onState: stating(new Meters(meterTable, memory.meters, memory.rows.push)),
  })
  writer.start()
  return {
    log,
    async close() {
      // What is being written ends with the client.
      await Promise.all([writer.close(), client.close()])
      await lead.close()
      await environment.close()
    },
  }
}

/** Keeps the meters of a writer. */
function stating(meters: Meters): (state: WriterState) => void {
  const [leading, height, lag] = [
    meters.of('clickhouse_push_leads'),
    meters.of('clickhouse_push_height'),
    meters.of('clickhouse_push_lag_heights'),
  ]
  const well = meters.of('clickhouse_push_well_seconds')
  const [rows, failures] = [
    meters.of('clickhouse_push_rows_total'),
    meters.of('clickhouse_push_failures_total'),
  ]
  let before: Pick<WriterState, 'rows' | 'failures'> = { rows: 0, failures: 0 }
  return (state) => {
    leading.set(state.leads ? 1 : 0)
    height.set(state.leads ? state.height : 0)
    lag.set(state.leads ? state.lag : 0)
    well.set(Math.floor(state.wellMs / 1000))
    rows.add(state.rows - before.rows)
    failures.add(state.failures - before.failures)
    before = state
  }
}
