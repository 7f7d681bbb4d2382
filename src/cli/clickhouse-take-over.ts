import type { Config } from '../../config/read.js'
import { systemClock } from '../actor/clock.js'
import { takeForeignRows } from '../clickhouse/foreign-rows.js'
import { isRefusal } from '../format/refusal.js'
import { openClickhouse } from '../threads/index/open-clickhouse.js'
import type { PushWanted } from './clickhouse-push.js'
import { failedAs, serverExitCode } from './command-failed.js'
import { exitCode } from './exit-code.js'
import { grouped, Progress } from './progress-line.js'

const failed = failedAs('index take-over')

/** Counts heights as whole that another program has written into ClickHouse. Resolves with the exit code. */
export async function takeOverRows(config: Config, wanted: PushWanted): Promise<number> {
  const client = openClickhouse(config)
  if (client === undefined) return failed(exitCode.usage, 'CLICKHOUSE_URL is not set')
  const progress = new Progress('take-over', systemClock)
  try {
    const found = await takeForeignRows(client, wanted, systemClock, (height, { from, to }) =>
      progress.show(height - from + 1, to - from + 1, `up to height ${height}`),
    )
    if (found === undefined) return failed(exitCode.notFound, 'ClickHouse has no rows of these heights')
    if (isRefusal(found)) return failed(serverExitCode(found), found.message)
    const { from, to, rows } = found
    progress.end(to - from + 1, to - from + 1)
    process.stdout.write(`heights ${from} to ${to} count as whole, with ${grouped(rows)} rows\n`)
    return exitCode.done
  } finally {
    await client.close()
  }
}
