import { isRefusal } from '../../src/format/refusal.js'
import { openTable } from '../../src/parquet/parquet-reader.js'

const reading = {
  fault: () => undefined,
  columns: () => undefined,
  row: (stored: readonly unknown[]) => [stored[0] instanceof Uint8Array ? stored[0] : null],
}

/** Number of rows in a file of one column; or the refusal or error of the reader. */
export async function rowsOf(path: string): Promise<number | string> {
  const table = await openTable(path, reading)
  if (isRefusal(table)) return table.message
  let rows = 0
  try {
    for await (const batch of table.batches()) rows += batch.length
    return rows
  } catch (error) {
    return String(error)
  } finally {
    await table.close()
  }
}
