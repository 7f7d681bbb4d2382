import type { FileHandle } from 'node:fs/promises'
import * as zlib from 'node:zlib'
import { gunzipSync } from 'node:zlib'
import {
  type AsyncBuffer,
  type Compressors,
  type FileMetaData,
  parquetMetadata,
  parquetRead,
  type SchemaElement,
} from 'hyparquet'
import { type Refusal, refuse } from '../format/refusal.js'
import { openRegular } from '../store/regular-file.js'
import type { Columns, ColumnType, Value } from './l1-layout.js'
import { checkedPages, groupRowsMax } from './page-check.js'
import { parquetSchemaOf } from './parquet-writer.js'
import { isThriftStruct } from './thrift-check.js'

/** Rows of a batch. As many are decoded at once, or those of the largest page, which the library decodes whole for any row. */
const batchRows = 16_384
/** A row group is read whole: more than this, unpacked, is refused. */
const groupBytesMax = 1024 * 2 ** 20
/** Values of a row group are decoded at once, some 110 bytes each. DuckDB makes groups of 122,880 rows. */
const groupValuesMax = 2 ** 22
const footerBytesMax = 16 * 2 ** 20
/** Some 500 for each row group of 17 columns. */
const footerValuesMax = 300_000
/** The values of a batch: a value in a dictionary is read again for each row that names it. */
const batchBytesMax = 256 * 2 ** 20
/** Rows for each byte of a file at most: each row has an id or a place of its own, which packing makes no smaller. */
const rowsPerByteMax = 4n

/** Node 20 has no Zstandard: a file that needs it is refused there with a clear reason. */
const zstd = (
  zlib as { zstdDecompressSync?: (bytes: Uint8Array, limits: { maxOutputLength: number }) => Uint8Array }
).zstdDecompressSync
/** The stated size of a page; zlib takes an absent one for no limit. */
const limitOf = (size: number) => ({ maxOutputLength: Math.max(1, size) })

const compressors: Compressors = {
  GZIP: (bytes, size) => gunzipSync(bytes, limitOf(size)),
  ...(zstd && { ZSTD: (bytes: Uint8Array, size: number) => zstd(bytes, limitOf(size)) }),
}

/** An open Parquet file whose columns are the wanted ones. */
export interface ParquetTable {
  readonly rows: number
  /** All rows in order, some thousand at a time. Throws `ParquetFault` where the bytes are not what they should be. */
  batches(): AsyncGenerator<Value[][]>
  close(): Promise<void>
}

/** The file contradicts its own metadata: an error of its writer. */
export class ParquetFault extends Error {}

/** How the rows of a file are read. */
export interface TableReading {
  /** What is wrong with its schema; undefined: nothing. */
  fault(metadata: FileMetaData): string | undefined
  /** Names of the columns that are read, in this order, or undefined for all in the order of the file; called after `fault`. */
  columns(metadata: FileMetaData): string[] | undefined
  /** The values of a row out of what Parquet stores for them. Throws `ParquetFault`. */
  row(stored: readonly unknown[], path: string): Value[]
}

/** Opens a Parquet file and checks its schema against `columns`: same names, order and types. */
export function openParquet(path: string, columns: Columns): Promise<ParquetTable | Refusal> {
  return openTable(path, {
    fault: (metadata) => schemaFault(metadata, columns),
    columns: () => undefined,
    row: (stored, from) => columns.map(([name, type], at) => meaningOf(stored[at], type, `${from}: ${name}`)),
  })
}

/** Opens a Parquet file. */
export async function openTable(path: string, reading: TableReading): Promise<ParquetTable | Refusal> {
  const handle = await openRegular(path).catch((error: unknown) => error as NodeJS.ErrnoException)
  if (handle === undefined) return refuse('malformed', 'upstream', `${path}: not a regular file`)
  if (handle instanceof Error) return refuse('unknown', 'client', `${path}: ${handle.code ?? handle.message}`)
  const bad = (why: string): Refusal => refuse('malformed', 'upstream', `${path}: ${why}`)
  try {
    const file = await asyncBuffer(handle)
    const footer = await footerOf(file)
    const metadata = typeof footer === 'string' ? footer : parquetMetadata(footer, { geoparquet: false })
    const wrong =
      typeof metadata === 'string'
        ? metadata
        : (fileFault(metadata, file.byteLength) ?? reading.fault(metadata))
    if (typeof metadata === 'string' || wrong !== undefined) {
      await handle.close()
      return bad(wrong ?? '')
    }
    const rows = Number(metadata.num_rows)
    const plain = { ...metadata, schema: metadata.schema.map(withoutMeaning) }
    return {
      rows,
      batches: () => batches(path, file, plain, reading),
      close: () => handle.close(),
    }
  } catch (error) {
    await handle.close()
    return bad(String(error))
  }
}

/** The end of a file from its metadata on, or what is wrong with it. The last 8 bytes are its length and `PAR1`. */
async function footerOf(file: AsyncBuffer): Promise<ArrayBuffer | string> {
  const { byteLength } = file
  if (byteLength < 12) return 'it is too short for a Parquet file'
  const end = new DataView(await file.slice(byteLength - 8, byteLength))
  if (end.getUint32(4, true) !== 0x31524150) return 'it does not end as a Parquet file does'
  const length = end.getUint32(0, true)
  if (length > Math.min(footerBytesMax, byteLength - 8)) return 'its footer is too long'
  const footer = await file.slice(byteLength - 8 - length, byteLength)
  const isSound = isThriftStruct(new Uint8Array(footer, 0, length), 0, footerValuesMax)
  return isSound ? footer : 'its footer is malformed, or has too many values'
}

async function asyncBuffer(handle: FileHandle): Promise<AsyncBuffer> {
  const { size } = await handle.stat()
  return {
    byteLength: size,
    async slice(start, end = size) {
      const length = Math.min(end, size) - start
      if (length < 0 || length > groupBytesMax) throw new ParquetFault(`a stretch of ${length} bytes`)
      const bytes = new Uint8Array(length)
      let at = 0
      while (at < length) {
        const { bytesRead } = await handle.read(bytes, at, length - at, start + at)
        if (bytesRead === 0) throw new ParquetFault('the file ends early')
        at += bytesRead
      }
      return bytes.buffer
    },
  }
}

/** Logical types are removed, so that the reader returns values as they are stored, without rounding. */
function withoutMeaning({
  converted_type: _type,
  logical_type: _logical,
  ...element
}: SchemaElement): SchemaElement {
  return element
}

function schemaFault(metadata: FileMetaData, columns: Columns): string | undefined {
  const wanted = parquetSchemaOf(columns).slice(1)
  const found = metadata.schema.slice(1)
  if (found.length !== wanted.length) return `${found.length} columns where there should be ${wanted.length}`
  for (const [at, element] of wanted.entries()) {
    const there = found[at]
    const same =
      there?.name === element.name &&
      there.type === element.type &&
      there.type_length === element.type_length &&
      there.converted_type === element.converted_type &&
      there.precision === element.precision &&
      (there.scale ?? 0) === (element.scale ?? 0) &&
      there.repetition_type !== 'REPEATED' &&
      there.num_children === undefined
    if (!same) return `column ${at} is not ${element.name} ${columns[at]?.[1]}`
  }
  return undefined
}

/** What is wrong with the file whatever its columns are. */
function fileFault(metadata: FileMetaData, sizeBytes: number): string | undefined {
  if (metadata.num_rows > BigInt(sizeBytes) * rowsPerByteMax)
    return 'it declares more rows than its bytes can hold'
  let rows = 0n
  for (const group of metadata.row_groups) {
    rows += group.num_rows
    const values = group.num_rows * BigInt(group.columns.length)
    const isLarge = values > groupValuesMax || group.total_byte_size > BigInt(groupBytesMax)
    if (group.num_rows < 0n || group.num_rows > groupRowsMax || isLarge) return 'a row group is too large'
    const codecs = group.columns.map(({ meta_data: column }) => column?.codec ?? 'UNCOMPRESSED')
    if (zstd === undefined && codecs.includes('ZSTD'))
      return 'it needs Zstandard: use Node 22 or later to read it'
  }
  return rows === metadata.num_rows ? undefined : 'its row groups do not add up to its rows'
}

async function* batches(
  path: string,
  file: AsyncBuffer,
  metadata: FileMetaData,
  reading: TableReading,
): AsyncGenerator<Value[][]> {
  const columns = reading.columns(metadata)
  const chosen = columns === undefined ? {} : { columns }
  let start = 0
  for (const group of metadata.row_groups) {
    const end = start + Number(group.num_rows)
    const checked = { file, schema: metadata.schema, group, columns, compressors, bytesMax: groupBytesMax }
    const pageRows = await checkedPages(checked).catch(String)
    if (typeof pageRows === 'string') throw new ParquetFault(`${path}: ${pageRows}`)
    while (start < end) {
      const rowStart = start
      start = Math.min(start + Math.max(batchRows, pageRows), end)
      let rows: unknown[][] = []
      try {
        await parquetRead({
          file,
          metadata,
          compressors,
          utf8: false,
          rowStart,
          rowEnd: start,
          ...chosen,
          onComplete: (found) => {
            rows = found as unknown[][]
          },
        })
      } catch (error) {
        throw new ParquetFault(`${path}: ${String(error)}`)
      }
      // The library fills up rows that are declared and not there: no value of theirs is.
      if (rows.length !== start - rowStart || rows.some(isEmpty))
        throw new ParquetFault(`${path}: rows are missing`)
      for (let at = 0; at < rows.length; at += batchRows) {
        const batch = rows.slice(at, at + batchRows)
        if (bytesOf(batch) > batchBytesMax) throw new ParquetFault(`${path}: its values are too long`)
        yield batch.map((row) => reading.row(row, path))
      }
    }
  }
}

function bytesOf(rows: readonly (readonly unknown[])[]): number {
  let sum = 0
  for (const row of rows) for (const value of row) if (value instanceof Uint8Array) sum += value.length
  return sum
}

/** No table has a row without any value. */
function isEmpty(row: readonly unknown[]): boolean {
  return row.every((value) => value === null || value === undefined)
}

const text = new TextDecoder('utf-8', { fatal: true })

/** The value of a column out of what Parquet stores for it. */
function meaningOf(stored: unknown, type: ColumnType, where: string): Value {
  if (stored === null || stored === undefined) return null
  switch (type) {
    case 'BLOB':
      if (stored instanceof Uint8Array) return stored
      break
    case 'VARCHAR':
      if (stored instanceof Uint8Array) return textOf(stored, where)
      break
    case 'UBIGINT':
      if (typeof stored === 'bigint') return BigInt.asUintN(64, stored)
      break
    case 'BIGINT':
      if (typeof stored === 'bigint') return stored
      break
    case 'INTEGER':
      if (typeof stored === 'number') return stored
      break
    case 'UINTEGER':
      if (typeof stored === 'number') return stored >>> 0
      break
    case 'USMALLINT':
      if (typeof stored === 'number' && stored >= 0 && stored <= 0xffff) return stored
      break
    case 'UTINYINT':
      if (typeof stored === 'number' && stored >= 0 && stored <= 0xff) return stored
      break
    case 'BOOLEAN':
      if (typeof stored === 'boolean') return stored
      break
    case 'DECIMAL(20,0)':
      if (stored instanceof Uint8Array && stored.length <= 16) return signedOf(stored)
      break
  }
  throw new ParquetFault(`${where} holds what is no ${type}`)
}

function textOf(bytes: Uint8Array, where: string): string {
  try {
    return text.decode(bytes)
  } catch {
    throw new ParquetFault(`${where} holds what is no UTF-8`)
  }
}

function signedOf(bytes: Uint8Array): bigint {
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')
  return hex === '' ? 0n : BigInt.asIntN(bytes.length * 8, BigInt(`0x${hex}`))
}
