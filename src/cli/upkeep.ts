import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { readConfig } from '../../config/read.js'
import { type BulkTotals, bulkRate } from '../catalog/bulk-totals.js'
import { checkIndex } from '../catalog/index-check.js'
import { compactIndex } from '../catalog/index-compact.js'
import { indexStats } from '../catalog/index-stats.js'
import { openIndexTables } from '../catalog/index-tables.js'
import type { FlushLimits } from '../catalog/segment-upkeep.js'
import { openCatalogTables } from '../catalog/tables.js'
import { checkWhileIdle, claimDataFolder } from '../main/data-folder.js'
import { exitCode } from './exit-code.js'
import { paint } from './paint.js'

const help = `sluice index: checks, compacts, measures or shares the index of the chain

Usage: sluice index check
       sluice index compact
       sluice index stats
       sluice index push [--from HEIGHT] [--to HEIGHT]
       sluice index take-over [--from HEIGHT] [--to HEIGHT]

  check    reads every entry of every table and every segment, and prints contradictions; may run while the gateway runs.
           Ends with code 4 where something is wrong
  compact  moves stable rows into segments, merges these, and rewrites the tables without unused space, into a new file that
           replaces the old one; the gateway must not run
  stats    prints what each part of the index takes on disk; may run while the gateway runs
  push     writes heights that no fork can replace into ClickHouse (CLICKHOUSE_URL): makes the tables that are missing, fills
           that of whole rows where it is new, begins behind what is there, and may run while the gateway runs. What is written
           again counts once. Killed at any moment, a second run continues from the last record
  take-over
           counts heights as whole that the importer of ar-io-node has written into ClickHouse, and looks up the tags of their
           rows. Name none that it has not written with all items and transactions: what is missing there is in no answer

  --from   begins with this height, also where it was written before
  --to     ends with it

All work on DATA_PATH/catalog.

Examples:
  DATA_PATH=/srv/sluice sluice index check
  CLICKHOUSE_URL=https://clickhouse.internal:8443 sluice index push
`

/** Maintenance of the index. */
export async function index(words: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...words],
    options: { help: { type: 'boolean' }, from: { type: 'string' }, to: { type: 'string' } },
    allowPositionals: true,
  })
  const [what] = positionals
  if (values.help === true) {
    process.stdout.write(help)
    return 0
  }
  const config = readConfig()
  if (Array.isArray(config)) return wrong(config.join('\n  '))
  const path = join(resolve(config.server.dataPath), 'catalog')
  if (what !== 'check' && what !== 'compact' && what !== 'stats' && !isShared(what)) {
    return wrong('give check, compact, stats, push or take-over; see sluice index --help')
  }
  const bounds = [values.from, values.to].filter((text) => text !== undefined)
  if (bounds.some((text) => !/^\d{1,9}$/.test(text)) || (!isShared(what) && bounds.length > 0))
    return wrong('--from and --to of push and take-over want a height')
  const heightIn = (text: string | undefined): number | undefined =>
    text === undefined ? undefined : Number(text)
  const heights = { from: heightIn(values.from), to: heightIn(values.to) }
  if (what === 'take-over') return (await import('./clickhouse-take-over.js')).takeOverRows(config, heights)
  if (!existsSync(path)) return wrong(`there is no index at ${path}: set DATA_PATH`)
  const root = resolve(config.server.dataPath)
  const { segmentRows: rows, forkDepthMax: forkDepth } = config.indexing
  if (what === 'compact') return compact(root, path, { rows, forkDepth })
  if (what === 'stats') return stats(path)
  await checkWhileIdle(root)
  if (what === 'check') return check(path)
  return (await import('./clickhouse-push.js')).pushIndex(config, heights)
}

/** What is about the index in ClickHouse. */
function isShared(what: string | undefined): what is 'push' | 'take-over' {
  return what === 'push' || what === 'take-over'
}

function wrong(message: string): number {
  process.stderr.write(`sluice index: ${message}\n`)
  return exitCode.usage
}

async function check(path: string): Promise<number> {
  const { environment } = openCatalogTables(path)
  const { rows, postings, words, blocks, problems } = checkIndex(openIndexTables(environment))
  await environment.close()
  process.stdout.write(`${blocks} blocks, ${rows} rows, ${postings} postings, ${words} words\n`)
  for (const problem of problems) process.stdout.write(`${paint('red', 'wrong')}  ${problem}\n`)
  if (problems.length === 0) process.stdout.write(`${paint('green', 'sound')}\n`)
  return problems.length === 0 ? exitCode.done : exitCode.untrue
}

async function stats(path: string): Promise<number> {
  const { environment } = openCatalogTables(path)
  const found = indexStats(openIndexTables(environment))
  const { rows, tables, runs, sections, segments, mergesDue, bulk } = found
  await environment.close()
  const line = (name: string, entries: number, bytes: number): void => {
    const each = rows === 0 ? '' : `${(bytes / rows).toFixed(1).padStart(8)} a row`
    process.stdout.write(
      `${name.padEnd(24)}${String(entries).padStart(14)}${String(bytes).padStart(16)} bytes${each}\n`,
    )
  }
  const parts = [...tables, ...runs, ...sections]
  for (const { part, entries, bytes } of parts) if (bytes > 0) line(part, entries, bytes)
  for (const { number, level, rows: count, bytes } of segments)
    line(`file ${number}, level ${level}`, count, bytes)
  line(
    'all',
    rows,
    parts.reduce((sum, { bytes }) => sum + bytes, 0),
  )
  process.stdout.write(`merges due: ${mergesDue}\n`)
  if (bulk !== undefined) process.stdout.write(`last import in bulk: ${sayBulk(bulk)}\n`)
  return exitCode.done
}

function sayBulk(bulk: BulkTotals): string {
  const until = new Date(bulk.listedSeconds * 1000).toISOString()
  const memory = (bulk.batchBytesMax / 2 ** 20).toFixed(0)
  return `${bulk.rows} rows, ${Math.round(bulkRate(bulk))} a second, until ${until}, at most ${memory} MiB of rows in memory`
}

async function compact(root: string, path: string, flush: FlushLimits): Promise<number> {
  const claim = await claimDataFolder(root)
  const fresh = `${path}.new`
  try {
    rmSync(fresh, { recursive: true, force: true })
    mkdirSync(fresh)
    const { environment } = openCatalogTables(path)
    const done = compactIndex(openIndexTables(environment), flush)
    await environment.copyTo(fresh)
    await environment.close()
    // Two renames: a process killed between them leaves both copies, the old one complete.
    renameSync(path, `${path}.old`)
    renameSync(fresh, path)
    rmSync(`${path}.old`, { recursive: true })
    const { blocksBefore, blocksAfter, wordsDropped } = done
    process.stdout.write(
      `${blocksBefore} blocks of postings are ${blocksAfter} now, ${wordsDropped} words dropped\n`,
    )
    return 0
  } finally {
    await claim.release()
  }
}
