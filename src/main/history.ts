import { settingsInUse } from '../../config/read.js'
import { systemClock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Meters } from '../actor/meter.js'
import { residentBytes } from '../actor/resident-memory.js'
import type { Tip } from '../actor/shared.js'
import type { RunningPart } from '../actor/supervise.js'
import { programVersion } from '../actor/version.js'
import { columnsOf } from '../history/columns.js'
import { openHistory } from '../history/history-store.js'
import { HistoryRecorder } from '../history/recorder.js'
import { isDiskError } from '../store/disk-error.js'

/** Keeps what happens for the console, as long as the program runs. On a full disk it is not kept until the next start. */
export async function keepHistory(path: string, meters: Meters, tip: Tip, log: Log): Promise<RunningPart> {
  const gauges = {
    process_resident_memory_bytes: residentBytes,
    index_lag_blocks: () => Math.max(0, tip.height - meters.total('last_height_imported')),
  }
  try {
    const store = openHistory(path, (error) =>
      log.warn({ err: error }, 'the history for the console was damaged, and begins anew'),
    )
    const recorder = new HistoryRecorder({
      store,
      columns: columnsOf(meters, gauges),
      clock: systemClock,
      log,
      start: {
        versions: `Sluice ${programVersion()}, Node ${process.versions.node}`,
        settings: settingsInUse(),
      },
    })
    return { stop: () => recorder.close() }
  } catch (error) {
    if (!isDiskError(error)) throw error
    log.warn({ err: error }, 'the disk does not take the history for the console: it is not kept in this run')
    return { stop: () => Promise.resolve() }
  }
}
