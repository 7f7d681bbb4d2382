// Writes the index as Parquet files and asks them by SQL.
// node examples/09-export-to-duckdb.mjs data/keys/admin.key data
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'

const gateway = process.env.GATEWAY ?? 'http://127.0.0.1:3000'
const [keyFile = 'data/keys/admin.key', dataPath = 'data'] = process.argv.slice(2)
const headers = {
  authorization: `Bearer ${readFileSync(keyFile, 'utf8').trim()}`,
  'content-type': 'application/json',
}
const admin = `${gateway}/gateway/admin/export-parquet`
const outputDir = `example-${Date.now()}`
const body = JSON.stringify({ outputDir, startHeight: 0, endHeight: 1_000_000 })
const begun = await fetch(admin, { method: 'POST', headers, body })
if (begun.status !== 200) throw new Error(`${begun.status} ${await begun.text()}`)
for (;;) {
  const state = await (await fetch(`${admin}/status`, { headers })).json()
  if (state.status === 'completed' && state.rows.transactions > 0) break
  if (state.status === 'completed')
    throw new Error(
      `no transaction up to the last final block, ${state.lastHeight}: try again when there are more blocks`,
    )
  if (state.status !== 'running') throw new Error(JSON.stringify(state))
  await new Promise((resolve) => setTimeout(resolve, 100))
}
const files = (table) => join(dataPath, 'parquet', outputDir, table, '**/*.parquet')
const connection = await (await DuckDBInstance.create()).connect()
const sql = `SELECT content_type, count(*)::INT AS items FROM read_parquet('${files('transactions')}') GROUP BY 1 ORDER BY 2 DESC`
const reader = await connection.runAndReadAll(sql)
for (const [type, items] of reader.getRows())
  console.log(`${String(items).padStart(6)}  ${type ?? 'without a content type'}`)
