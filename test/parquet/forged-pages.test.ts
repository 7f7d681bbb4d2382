/** Pages whose numbers would make the reader fill the memory, or never end. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FileMetaData } from 'hyparquet'
import { ByteWriter } from 'hyparquet-writer'
import { writeMetadata } from 'hyparquet-writer/src/metadata.js'
import { serializeTCompactProtocol } from 'hyparquet-writer/src/thrift.js'
import t from 'tap'
import { rowsOf } from './rows-of.js'

/** Numbers that a page states of itself. */
interface Stated {
  readonly values?: number
  readonly unpacked?: number
  readonly packed?: number | undefined
  /** 0: PLAIN, 5 to 7: those that begin with DELTA, 8: RLE_DICTIONARY, 9: BYTE_STREAM_SPLIT. */
  readonly encoding?: number
  readonly isSecond?: true
  readonly levels?: number
  readonly nulls?: number
  readonly rows?: number
}

function pageOf(body: Buffer, stated: Stated = {}): Buffer {
  const {
    values = 2,
    unpacked = body.length,
    encoding = 0,
    levels = 0,
    nulls = 0,
    rows = values,
    isSecond,
  } = stated
  const packed = 'packed' in stated ? stated.packed : body.length
  const header = new ByteWriter()
  const first = { field_1: values, field_2: encoding, field_3: 3, field_4: 3 }
  const second = {
    field_1: values,
    field_2: nulls,
    field_3: rows,
    field_4: encoding,
    field_5: levels,
    field_6: 0,
  }
  serializeTCompactProtocol(header, {
    field_1: isSecond ? 3 : 0,
    field_2: unpacked,
    ...(packed === undefined ? {} : { field_3: packed }),
    ...(isSecond ? { field_8: second } : { field_5: first }),
  })
  return Buffer.concat([header.getBytes(), body])
}

interface Made {
  readonly codec?: 'UNCOMPRESSED' | 'SNAPPY'
  readonly isOptional?: boolean
  readonly rows?: number
  /** How often its footer names the column. */
  readonly columns?: number
}

/** A file of one column of byte strings, of these pages. */
function fileOf(
  path: string,
  pages: readonly Buffer[],
  { codec, isOptional = true, rows = 2, columns = 1 }: Made = {},
): string {
  const body = Buffer.concat(pages)
  const chunk = {
    type: 'BYTE_ARRAY',
    encodings: ['PLAIN'],
    path_in_schema: ['id'],
    codec: codec ?? 'UNCOMPRESSED',
    num_values: BigInt(rows),
    total_uncompressed_size: BigInt(body.length),
    total_compressed_size: BigInt(body.length),
    data_page_offset: 4n,
  }
  const metadata = {
    version: 2,
    schema: [
      { name: 'root', num_children: 1 },
      { name: 'id', type: 'BYTE_ARRAY', repetition_type: isOptional ? 'OPTIONAL' : 'REQUIRED' },
    ],
    num_rows: BigInt(rows),
    row_groups: [
      {
        columns: Array.from({ length: columns }, () => ({ file_offset: 4n, meta_data: chunk })),
        total_byte_size: BigInt(body.length),
        num_rows: BigInt(rows),
      },
    ],
    metadata_length: 0,
  } as unknown as FileMetaData
  const footer = new ByteWriter()
  writeMetadata(footer, metadata)
  writeFileSync(path, Buffer.concat([Buffer.from('PAR1'), body, footer.getBytes(), Buffer.from('PAR1')]))
  return path
}

/** Two byte strings. */
const plain = Buffer.from([1, 0, 0, 0, 65, 1, 0, 0, 0, 66])
/** A run of `count` times a byte. */
function run(count: number, byte = 1): Buffer {
  const bytes: number[] = []
  for (let left = count * 2; ; left = Math.floor(left / 128)) {
    bytes.push((left % 128) + (left > 127 ? 128 : 0))
    if (left < 128) break
  }
  return Buffer.from([...bytes, byte])
}
function withLevels(count: number, values = plain): Buffer {
  const levels = run(count)
  return Buffer.concat([Buffer.from([levels.length, 0, 0, 0]), levels, values])
}

t.test('what a page says of its values is compared with its row group and its bytes', async (t) => {
  const path = join(t.testdir({}), 'table.parquet')
  const read = (pages: readonly Buffer[], made?: Made): Promise<number | string> =>
    rowsOf(fileOf(path, pages, made))
  const second = { isSecond: true, levels: run(2).length } as const

  t.equal(await read([pageOf(withLevels(2))]), 2, 'a page of the first version')
  t.equal(await read([pageOf(Buffer.concat([run(2), plain]), second)]), 2, 'and one of the second')
  t.equal(await read([pageOf(plain)], { isOptional: false }), 2, 'and one without levels')

  const longest = 2 ** 30
  t.match(await read([pageOf(withLevels(longest))]), /a run is longer than its page/)
  const levels = run(longest)
  const long = pageOf(Buffer.concat([levels, plain]), { isSecond: true, levels: levels.length })
  t.match(await read([long]), /a run is longer than its page/)
  const places = Buffer.concat([Buffer.from([1]), run(longest)])
  t.match(
    await read([pageOf(places, { encoding: 8 })], { isOptional: false }),
    /a run is longer than its page/,
  )
  const both = pageOf(Buffer.concat([run(2), places]), { ...second, encoding: 8 })
  t.match(await read([both]), /a run is longer than its page/)

  t.match(await read([pageOf(withLevels(2), { values: 2 ** 31 - 1 })]), /more values than its row group/)
  t.match(
    await read([pageOf(withLevels(2), { unpacked: 2 ** 31 - 1 })], { codec: 'SNAPPY' }),
    /are too large/,
  )
  t.match(await read([pageOf(withLevels(2), { packed: 2 ** 31 - 1 })]), /not inside its column/)
  t.match(
    await read([pageOf(withLevels(2), { packed: undefined })]),
    /not inside its column/,
    'which never ended',
  )
  t.match(
    await read([pageOf(Buffer.concat([run(2), plain]), { ...second, nulls: -(2 ** 30) })]),
    /make no sense/,
  )
  const split = ['DELTA_BINARY_PACKED', 'DELTA_LENGTH_BYTE_ARRAY', 'DELTA_BYTE_ARRAY']
  for (const [at, name] of [...split, 'RLE_DICTIONARY', 'BYTE_STREAM_SPLIT'].entries()) {
    if (name === 'RLE_DICTIONARY') continue
    const refused = new RegExp(`encoded as ${name}$`)
    // Blocks of 128 values in -1 parts, which the library reads for ever.
    const parts = Buffer.from([128, 1, 0xff, 0xff, 0xff, 0xff, 0x0f, 2, 0, 0, 0, 0, 0, 0, 0])
    const encoding = 5 + at
    t.match(await read([pageOf(parts, { encoding })], { isOptional: false }), refused)
    t.match(await read([pageOf(withLevels(2, parts), { encoding })]), refused, 'and behind levels')
    const last = pageOf(Buffer.concat([run(2), parts]), { ...second, encoding })
    t.match(await read([last]), refused, 'and in a page of the second version')
  }
  t.match(await read([pageOf(withLevels(2))], { rows: 2 ** 20 + 1 }), /more rows than its bytes|too large/)
  const wide = { rows: 2 ** 19, columns: 9 }
  t.match(await read([pageOf(withLevels(2, Buffer.alloc(2 ** 18)))], wide), /a row group is too large/)
})

t.test('a level is 0 or 1, and their sum is how many values are there', async (t) => {
  const path = join(t.testdir({}), 'table.parquet')
  const read = (pages: readonly Buffer[]): Promise<number | string> => rowsOf(fileOf(path, pages))
  // The run of places is as long as the levels add up to, and the library counts one value.
  const levels = Buffer.concat([run(1), run(1, 255)])
  const places = Buffer.concat([Buffer.from([levels.length, 0, 0, 0]), levels, Buffer.from([1]), run(256)])
  t.match(await read([pageOf(places, { encoding: 8 })]), /levels of a page make no sense/)
  const body = Buffer.concat([levels, plain])
  const second = { isSecond: true, levels: levels.length } as const
  t.match(await read([pageOf(body, second)]), /levels of a page make no sense/)
  const absent = Buffer.concat([run(1), run(1, 0)])
  const one = Buffer.concat([absent, plain.subarray(0, 5)])
  t.match(await read([pageOf(one, { ...second, levels: absent.length })]), /levels of a page make no sense/)
})

t.test('no page is left unchecked, whatever those before it state', async (t) => {
  const path = join(t.testdir({}), 'table.parquet')
  const read = (pages: readonly Buffer[]): Promise<number | string> => rowsOf(fileOf(path, pages))
  const body = Buffer.concat([run(2), plain])
  const second = { isSecond: true, levels: run(2).length } as const
  const delta = pageOf(withLevels(2, Buffer.from([128, 1, 0xff, 0xff, 0xff, 0xff, 0x0f, 2, 0])), {
    encoding: 5,
  })
  for (const rows of [-1, 0, 1, 3])
    t.match(
      await read([pageOf(body, { ...second, rows }), delta]),
      /levels of a page make no sense/,
      `${rows}`,
    )
  t.match(await read([pageOf(body, second), delta]), /more values than its row group/)
  const empty = pageOf(Buffer.from([2, 0, 0, 0, 0, 0, 5]), { values: 0, encoding: 5 })
  t.match(await read([pageOf(body, second), empty]), /encoded as DELTA_BINARY_PACKED/)
})
