/** Files that declare rows which they do not have. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type FileMetaData, parquetMetadata } from 'hyparquet'
import { ByteWriter, parquetWriteBuffer } from 'hyparquet-writer'
import { writeMetadata } from 'hyparquet-writer/src/metadata.js'
import t from 'tap'
import { rowsOf } from './rows-of.js'

const ids = Array.from({ length: 100 }, (_, at) => new Uint8Array(32).fill(at))

/** A file of 100 ids whose metadata says that it has `rows`. */
function declaring(path: string, rows: bigint): void {
  const whole = parquetWriteBuffer({ columnData: [{ name: 'id', data: ids, type: 'BYTE_ARRAY' }] })
  const metadata = parquetMetadata(whole)
  const [group] = metadata.row_groups
  if (group === undefined) throw new Error('no row group')
  const bodyBytes = whole.byteLength - metadata.metadata_length - 8
  const changed: FileMetaData = { ...metadata, num_rows: rows, row_groups: [{ ...group, num_rows: rows }] }
  const footer = new ByteWriter()
  writeMetadata(footer, changed)
  writeFileSync(path, Buffer.concat([Buffer.from(whole, 0, bodyBytes), footer.getBytes()]))
  writeFileSync(path, Buffer.from('PAR1'), { flag: 'a' })
}

t.test('rows that are declared and not there are not read as rows without values', async (t) => {
  const path = join(t.testdir({}), 'table.parquet')
  declaring(path, 100n)
  t.equal(await rowsOf(path), 100)
  declaring(path, 300n)
  t.match(await rowsOf(path), /rows are missing/)
  declaring(path, 2n ** 40n)
  t.match(await rowsOf(path), /more rows than its bytes can hold/)
})
