import type { AsyncBuffer, Compressors, DataReader, PageHeader, RowGroup, SchemaElement } from 'hyparquet'
import { parquetHeader } from 'hyparquet/src/column.js'
import { decompressPage } from 'hyparquet/src/datapage.js'
import { readRleBitPackedHybrid } from 'hyparquet/src/encoding.js'
import { readVarInt } from 'hyparquet/src/thrift.js'
import { isThriftStruct } from './thrift-check.js'

/**
 * The library allocates arrays by unchecked numbers in the pages of a Parquet file. They are the count of values, the length of a
 * run (31 bits in five bytes), and the unpacked size. They are compared here before it reads a row group.
 */

/** Rows of a group. DuckDB makes groups of 122,880. */
export const groupRowsMax = 2 ** 20
/** A run of values that are written bit by bit is filled up to whole bytes, or to a block of the writer. */
const paddingMax = 512
const dictionaries = new Set(['PLAIN_DICTIONARY', 'RLE_DICTIONARY'])

/** Values in the header of a page. A usual one has some fifteen. */
const headerValuesMax = 100

const longRun = 'a run is longer than its page'
const falseLevels = 'the levels of a page make no sense'

export interface CheckedGroup {
  readonly file: AsyncBuffer
  readonly schema: readonly SchemaElement[]
  readonly group: RowGroup
  /** Names of the columns that are read; undefined: all. */
  readonly columns: readonly string[] | undefined
  readonly compressors: Compressors
  /** Bytes of all pages together at most, unpacked. */
  readonly bytesMax: number
}

type Chunk = NonNullable<RowGroup['columns'][number]['meta_data']>

/** The rows of the largest page of a row group, or what is wrong with its pages. Throws where they end too early. */
export async function checkedPages(given: CheckedGroup): Promise<number | string> {
  const { schema, group, columns } = given
  let [bytesLeft, rowsMost] = [given.bytesMax, 0]
  for (const { meta_data: chunk } of group.columns) {
    const name = chunk?.path_in_schema[0] ?? ''
    if (chunk === undefined || (columns !== undefined && !columns.includes(name))) continue
    const element = schema.slice(1).find((one) => one.name === name)
    if (chunk.path_in_schema.length !== 1 || element === undefined) return 'a column has columns of its own'
    const found = await checkedColumn(given, chunk, element.repetition_type !== 'REQUIRED', bytesLeft)
    if (typeof found === 'string') return found
    bytesLeft = found.bytesLeft
    rowsMost = Math.max(rowsMost, found.rowsMost)
  }
  return rowsMost
}

/** How many bytes one column leaves for the others, and the rows of its largest page; or what is wrong with it. */
async function checkedColumn(
  { file, group, compressors }: CheckedGroup,
  chunk: Chunk,
  isOptional: boolean,
  bytesMax: number,
): Promise<{ readonly bytesLeft: number; readonly rowsMost: number } | string> {
  const start = Number(chunk.dictionary_page_offset || chunk.data_page_offset)
  const bytes = new Uint8Array(await file.slice(start, start + Number(chunk.total_compressed_size)))
  const reader = readerOf(bytes)
  let [valuesLeft, bytesLeft, rowsMost] = [Number(group.num_rows), bytesMax, 0]
  // To the end of the column: which pages the library reads must not decide which ones are looked at.
  while (reader.offset < bytes.length - 1) {
    if (!isThriftStruct(bytes, reader.offset, headerValuesMax)) return 'the header of a page is malformed'
    const header = parquetHeader(reader)
    const { compressed_page_size: size, uncompressed_page_size: unpacked, type } = header
    if (!(size >= 0 && reader.offset + size <= bytes.length)) return 'a page is not inside its column'
    bytesLeft -= unpacked
    if (!(unpacked >= 0 && bytesLeft >= 0)) return 'its pages are too large'
    const values = valuesIn(header)
    const isData = type !== 'DICTIONARY_PAGE'
    if (!(values >= 0 && values <= (isData ? valuesLeft : groupRowsMax)))
      return 'a page has more values than its row group'
    const page = { header, values, isOptional, body: bytes.subarray(reader.offset, reader.offset + size) }
    const fault = isData ? dataFault(page, chunk, compressors) : undefined
    if (fault !== undefined) return fault
    if (isData) {
      valuesLeft -= values
      rowsMost = Math.max(rowsMost, values)
    }
    reader.offset += size
  }
  return { bytesLeft, rowsMost }
}

interface DataPage {
  readonly header: PageHeader
  /** The page as it is in the file. */
  readonly body: Uint8Array
  readonly values: number
  readonly isOptional: boolean
}

function valuesIn({ type, ...headers }: PageHeader): number {
  const { dictionary_page_header: dictionary, data_page_header: data, data_page_header_v2: second } = headers
  const header = type === 'DICTIONARY_PAGE' ? dictionary : type === 'DATA_PAGE' ? data : second
  return header?.num_values ?? Number.NaN
}

/** Levels in front say which values are there; those may be places in a dictionary. Both are runs. */
function dataFault(page: DataPage, chunk: Chunk, compressors: Compressors): string | undefined {
  const { header, body, values, isOptional } = page
  const { data_page_header: first, data_page_header_v2: second } = header
  if (header.type === 'DATA_PAGE_V2' && second !== undefined) {
    const { definition_levels_byte_length: levels, repetition_levels_byte_length: lists, encoding } = second
    // The library goes by the rows of a page. No column is a list, so that each value is a row.
    if (second.num_rows !== values) return falseLevels
    if (lists !== 0 || !(levels >= 0 && levels <= body.length)) return falseLevels
    const present = isOptional ? presentIn(readerOf(body.subarray(0, levels)), values, levels) : values
    if (typeof present === 'string') return present
    if (present !== values - second.num_nulls) return falseLevels
    if (encoding === 'PLAIN') return undefined
    const packed = body.subarray(isOptional ? levels : 0)
    const size = header.uncompressed_page_size - levels
    const isPacked = second.is_compressed !== false
    const plain = isPacked ? decompressPage(packed, size, chunk.codec, compressors) : packed
    return valuesFault(readerOf(plain), encoding, chunk, present)
  }
  if (header.type !== 'DATA_PAGE' || first === undefined) return `a page is a ${header.type}`
  const { encoding } = first
  if (!isOptional && encoding === 'PLAIN') return undefined
  const plain = decompressPage(body, header.uncompressed_page_size, chunk.codec, compressors)
  const reader = readerOf(plain)
  const present = isOptional ? presentIn(reader, values) : values
  if (typeof present === 'string') return present
  return encoding === 'PLAIN' ? undefined : valuesFault(reader, encoding, chunk, present)
}

/**
 * Reads the levels in front of a page, 1 for each value that is there and 0 for each that is not: how many are there, or what is
 * wrong. `lengthBytes`: of the levels; absent: it stands in front of them, as in a page of the first version.
 */
function presentIn(reader: DataReader, values: number, lengthBytes?: number): number | string {
  const length = lengthBytes ?? reader.view.getUint32(0, true)
  const start = lengthBytes === undefined ? 4 : 0
  reader.offset = start
  if (hasLongRun(reader, 1, values)) return longRun
  reader.offset = start
  const levels = new Array<number>(values)
  readRleBitPackedHybrid(reader, 1, levels, length)
  let present = 0
  for (let at = 0; at < values; at += 1) {
    const level = levels[at]
    // A run states its level in a whole byte, of which one bit has a meaning.
    if (level !== 0 && level !== 1) return falseLevels
    present += level
  }
  return present
}

/**
 * Flags as runs, or places in a dictionary. No other encoding is read: in the DELTA encodings and BYTE_STREAM_SPLIT the library
 * takes lengths and counts of blocks out of the bytes unchecked, and writers of these tables use none of them.
 */
function valuesFault(reader: DataReader, encoding: string, chunk: Chunk, values: number): string | undefined {
  const isFlags = encoding === 'RLE' && chunk.type === 'BOOLEAN'
  if (!isFlags && !dictionaries.has(encoding)) return `values are encoded as ${encoding}`
  const width = chunk.type === 'BOOLEAN' ? 1 : reader.view.getUint8(reader.offset)
  // The runs of flags have their length in front.
  reader.offset += chunk.type === 'BOOLEAN' ? 4 : 1
  return hasLongRun(reader, width, values) ? longRun : undefined
}

function readerOf({ buffer, byteOffset, byteLength }: Uint8Array): DataReader {
  return { view: new DataView(buffer, byteOffset, byteLength), offset: 0 }
}

/** Whether a run of those that stand for so many values is longer than all of them. */
function hasLongRun(reader: DataReader, width: number, values: number): boolean {
  for (let seen = 0; seen < values && reader.offset < reader.view.byteLength; ) {
    const header = readVarInt(reader)
    const isBits = (header & 1) === 1
    const count = isBits ? (header >>> 1) * 8 : header >>> 1
    if (count > values + (isBits ? paddingMax : 0)) return true
    seen += count
    reader.offset += isBits ? Math.max(1, (count / 8) * width) : (width + 7) >> 3
  }
  return false
}
