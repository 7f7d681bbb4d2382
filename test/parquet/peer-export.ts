/** An export as the network's reference gateway writes it: DuckDB's types, order of rows, names of files and Zstandard. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import * as zlib from 'node:zlib'
import { duck } from './export-rig.js'

/** Node 20 reads no Zstandard. */
const compression = 'zstdDecompressSync' in zlib ? 'zstd' : 'snappy'

const selections = {
  blocks: `SELECT * REPLACE (CAST(tx_count AS BIGINT) AS tx_count)`,
  transactions: `SELECT * REPLACE (CAST(root_parent_offset AS UINTEGER) AS root_parent_offset)`,
  tags: 'SELECT *',
} as const
const orders = { blocks: 'height', transactions: 'height, id', tags: 'height, id, tag_index' } as const

/** Which of an export's rows are written, and as which run. */
export interface PeerRun {
  readonly from: number
  readonly to: number
  /** As the file names have it: a time and a process. */
  readonly run: string
  /** Rows of a file. */
  readonly rowsMax?: number
  readonly where?: string
}

/** Writes the tables of `source` (an export of this program) once more into `base`, as the other gateway would. */
export async function asPeerWrites(source: string, base: string, runs: readonly PeerRun[]): Promise<void> {
  const ask = await duck()
  for (const { from, to, run, rowsMax = 1_000_000, where = 'true' } of runs)
    for (const table of ['blocks', 'transactions', 'tags'] as const) {
      const folder = join(base, table, 'data', `height=${from}-${to}`)
      mkdirSync(folder, { recursive: true })
      const rows = `${selections[table]} FROM
        read_parquet('${source}/${table}/data/*/*.parquet', hive_partitioning=false)
        WHERE height BETWEEN ${from} AND ${to} AND ${table === 'blocks' ? 'true' : where} ORDER BY ${orders[table]}`
      const [[count] = []] = await ask(`SELECT count(*) FROM (${rows})`)
      for (let at = 0, part = 0; at < Number(count); at += rowsMax, part += 1) {
        const more = Number(count) > rowsMax ? `_${part}` : ''
        const file = join(folder, `${table}_${from}_${to}${more}_${run}.parquet`)
        const some = `SELECT * FROM (${rows}) LIMIT ${rowsMax} OFFSET ${at}`
        await ask(`COPY (${some}) TO '${file}' (FORMAT parquet, COMPRESSION ${compression})`)
      }
    }
}
