import { gzipSync } from 'node:zlib'
import type { SchemaElement } from 'hyparquet'
import { fileWriter, ParquetWriter } from 'hyparquet-writer'
import { syncNow } from '../store/synced.js'
import type { Columns, ColumnType, ParquetRow, Value } from './l1-layout.js'
import { RowDigest } from './row-digest.js'

/** What was written of a table. */
export interface WrittenTable {
  readonly rows: number
  /** 64 characters of hex (row-digest.ts). */
  readonly rowDigest: string
}

const elements: Readonly<Record<ColumnType, Omit<SchemaElement, 'name'>>> = {
  BLOB: { type: 'BYTE_ARRAY' },
  VARCHAR: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  UBIGINT: { type: 'INT64', converted_type: 'UINT_64' },
  BIGINT: { type: 'INT64', converted_type: 'INT_64' },
  INTEGER: { type: 'INT32', converted_type: 'INT_32' },
  UINTEGER: { type: 'INT32', converted_type: 'UINT_32' },
  USMALLINT: { type: 'INT32', converted_type: 'UINT_16' },
  UTINYINT: { type: 'INT32', converted_type: 'UINT_8' },
  BOOLEAN: { type: 'BOOLEAN' },
  'DECIMAL(20,0)': {
    type: 'FIXED_LEN_BYTE_ARRAY',
    type_length: 16,
    converted_type: 'DECIMAL',
    precision: 20,
    scale: 0,
  },
}

/** The schema of a Parquet file with these columns, each of which may be null. */
export function parquetSchemaOf(columns: Columns): SchemaElement[] {
  return [
    { name: 'schema', num_children: columns.length },
    ...columns.map(
      ([name, type]): SchemaElement => ({ name, repetition_type: 'OPTIONAL', ...elements[type] }),
    ),
  ]
}

/** Values that are held until they become a row group: what one reader needs in memory too. */
const groupBytesMax = 16 * 2 ** 20

/** What a value takes in memory, about. */
function sizeOf(value: Value): number {
  return value instanceof Uint8Array || typeof value === 'string' ? 16 + value.length : 16
}

/**
 * Writes a Parquet file row by row: row groups go to disk as they fill, so memory stays flat. Pages are gzipped: every reader
 * knows it, and zlib is in every Node (Zstandard is not in Node 20).
 */
export class ParquetFile {
  readonly #writer: ParquetWriter
  readonly #digest = new RowDigest()
  #group: Value[][]
  #groupRows = 0
  #groupBytes = 0
  #rows = 0

  constructor(
    private readonly path: string,
    private readonly columns: Columns,
    private readonly groupRowsMax: number,
  ) {
    this.#writer = new ParquetWriter({
      writer: fileWriter(path),
      schema: parquetSchemaOf(columns),
      codec: 'GZIP',
      compressors: { GZIP: (bytes) => gzipSync(bytes, { level: 3 }) },
      createdBy: 'sluice',
    })
    this.#group = columns.map(() => [])
  }

  /** Takes the next row; its bytes must not change any more. */
  push(row: ParquetRow): void {
    if (row.length !== this.columns.length)
      throw new RangeError(`${this.path}: a row of ${row.length} columns`)
    this.#digest.add(row)
    for (const [at, value] of row.entries()) {
      this.#group[at]?.push(value)
      this.#groupBytes += sizeOf(value)
    }
    this.#rows += 1
    this.#groupRows += 1
    if (this.#groupRows === this.groupRowsMax || this.#groupBytes > groupBytesMax) this.#flush()
  }

  /** Ends the file; it is on disk when this returns. */
  finish(): WrittenTable {
    this.end()
    syncNow(this.path)
    return { rows: this.#rows, rowDigest: this.#digest.hex() }
  }

  /** Ends the file without flushing it to the disk. */
  end(): void {
    this.#flush()
    void this.#writer.finish()
  }

  #flush(): void {
    if (this.#groupRows === 0) return
    const group = this.#group
    const columnData = this.columns.map(([name], at) => ({ name, data: group[at] ?? [] }))
    void this.#writer.write({ columnData, rowGroupSize: this.#groupRows })
    this.#group = this.columns.map(() => [])
    this.#groupRows = 0
    this.#groupBytes = 0
  }
}
