import type { Config } from '../../config/read.js'
import { systemClock } from '../actor/clock.js'
import { endlessEffort } from '../catalog/effort.js'
import { Generations } from '../catalog/generations.js'
import { ChainIndex } from '../catalog/index-reader.js'
import { openCatalogTables } from '../catalog/tables.js'
import type { ClickhouseClient } from '../clickhouse/clickhouse-client.js'
import { wholeHeights } from '../clickhouse/heights.js'
import { ensureTables, IndexPush, type PushProgress } from '../clickhouse/index-push.js'
import { missingHeights } from '../clickhouse/stable-writer.js'
import { fillWholeRows } from '../clickhouse/whole-rows.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import { folders } from '../threads/folders.js'
import { openClickhouse } from '../threads/index/open-clickhouse.js'
import { failedAs, serverExitCode } from './command-failed.js'
import { exitCode } from './exit-code.js'
import { grouped, Progress } from './progress-line.js'

const failed = failedAs('index push')

/** What the words of the command name. */
export interface PushWanted {
  readonly from: number | undefined
  readonly to: number | undefined
}

/** Writes the stable heights of the index here into ClickHouse. Resolves with the exit code. */
export async function pushIndex(config: Config, wanted: PushWanted): Promise<number> {
  const client = openClickhouse(config)
  if (client === undefined) return failed(exitCode.usage, 'CLICKHOUSE_URL is not set')
  const { environment } = openCatalogTables(folders(config).catalog)
  const index = new ChainIndex(environment, new Generations())
  try {
    index.refresh()
    return await pushed(client, index, config.indexing.forkDepthMax, wanted)
  } finally {
    await client.close()
    await environment.close()
  }
}

function refused(refusal: Refusal): number {
  return failed(serverExitCode(refusal), refusal.message)
}

async function pushed(
  client: ClickhouseClient,
  index: ChainIndex,
  forkDepth: number,
  wanted: PushWanted,
): Promise<number> {
  const made = await ensureTables(client)
  if (isRefusal(made)) return refused(made)
  const filling = new Progress('whole rows', systemClock)
  const filled = await fillWholeRows(client, (height, { from, to }) => {
    filling.show(height - from + 1, to - from + 1, `up to height ${height}`)
    return true
  })
  if (isRefusal(filled)) return refused(filled)
  const before = await wholeHeights(client)
  if (isRefusal(before)) return refused(before)
  const range = missingHeights(index, forkDepth, before, wanted)
  if (range === undefined) return failed(exitCode.notFound, 'the index has no stable heights')
  if (before !== undefined && wanted.from === undefined && range.from > before.to + 1) {
    const ends = `the index here begins at ${range.from}, and ClickHouse has heights up to ${before.to}`
    // The highest heights without a gap count: readers would lose those below.
    return failed(
      exitCode.notFound,
      `${ends}: those between are missing. With --from the lower ones count no longer`,
    )
  }
  if (range.to < range.from) {
    process.stdout.write(`ClickHouse has all stable heights, up to ${range.to}\n`)
    return exitCode.done
  }
  const progress = new Progress('push', systemClock)
  const all = index.count({ minHeight: range.from, maxHeight: range.to }, endlessEffort()) ?? 0
  const show = ({ rows, height }: PushProgress): void => progress.show(rows, all, `up to height ${height}`)
  const done = await new IndexPush(client, index, systemClock).run(range, show)
  if (done === 'replaced') throw new Error('a push by hand has no lease')
  if (isRefusal(done)) return refused(done)
  progress.end(done.rows, all)
  const left = done.leftOut === 0 ? '' : `; ${grouped(done.leftOut)} have no place in the tables`
  process.stdout.write(`${grouped(done.rows)} rows of the heights ${range.from} to ${done.height}${left}\n`)
  return exitCode.done
}
