/** Pages of more rows than are given out at once. */
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import zlib from 'node:zlib'
import t, { type Test } from 'tap'
import { isRefusal } from '../../src/format/refusal.js'
import { openParquet } from '../../src/parquet/parquet-reader.js'
import { ParquetFile } from '../../src/parquet/parquet-writer.js'

/** How often bytes were unpacked since the start of the test. */
function countUnpacked(t: Test): () => number {
  const { gunzipSync } = zlib
  let times = 0
  zlib.gunzipSync = (...given) => {
    times += 1
    return gunzipSync(...given)
  }
  syncBuiltinESMExports()
  t.teardown(() => {
    zlib.gunzipSync = gunzipSync
    syncBuiltinESMExports()
  })
  return () => times
}

t.test('a page is decoded once, however many batches its rows are', async (t) => {
  const path = join(t.testdir({}), 'table.parquet')
  const columns = [['height', 'UBIGINT']] as const
  const file = new ParquetFile(path, columns, 100_000)
  for (let at = 0n; at < 100_000n; at += 1n) file.push([at])
  file.finish()
  const unpacked = countUnpacked(t)
  const table = await openParquet(path, columns)
  if (isRefusal(table)) throw new Error(table.message)
  const batches: number[] = []
  let next = 0n
  for await (const rows of table.batches()) {
    batches.push(rows.length)
    t.ok(rows.every(([height], at) => height === next + BigInt(at)))
    next += BigInt(rows.length)
  }
  await table.close()
  t.strictSame(batches, [16_384, 16_384, 16_384, 16_384, 16_384, 16_384, 1696])
  t.ok(unpacked() > 0 && unpacked() <= 2, `unpacked ${unpacked()} times: for its check, and to be read`)
})
