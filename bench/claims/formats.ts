import { mkdirSync, rmSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { DuckDBInstance } from '@duckdb/node-api'
import { open as openLmdb } from 'lmdb'
import type { Columns, ParquetRow } from '../../src/parquet/l1-layout.js'
import { openParquet } from '../../src/parquet/parquet-reader.js'
import { ParquetFile } from '../../src/parquet/parquet-writer.js'
import { hashBandFile } from '../../src/torrent/hash.js'
import { hybridTorrent } from '../../src/torrent/torrent.js'
import { truthPath } from '../corpus/truth.js'
import { Dice } from '../kit/dice.js'
import { emptyFolder } from '../kit/folders.js'
import { say } from '../kit/say.js'

const help = `formats: Parquet and torrents by our writers and by libraries; the CDB64 lookups of cdb.ts in LMDB

  --folder PATH  where "npm i parquetjs-lite create-torrent" was run; without it these two are left out
  --rows N       of the table, and records of LMDB (200000)
`

/** Seconds of processor time, all threads. */
async function secondsOf<T>(act: () => T | Promise<T>): Promise<{ seconds: number; made: T }> {
  const before = process.cpuUsage()
  const made = await act()
  const { user, system } = process.cpuUsage(before)
  return { seconds: (user + system) / 1e6, made }
}

async function imported(folder: string, name: string): Promise<unknown> {
  const path = join(resolve(folder), 'node_modules', name)
  const loaded = (await import(pathToFileURL(path).href)) as { default: unknown }
  return loaded.default
}

const columns: Columns = [
  ['id', 'BLOB'],
  ['height', 'UBIGINT'],
  ['weave_offset', 'UBIGINT'],
  ['content_type', 'VARCHAR'],
  ['format', 'UTINYINT'],
]

function rowsOf(count: number): ParquetRow[] {
  const dice = new Dice(3)
  const word = (): number => dice.below(2 ** 32)
  return Array.from({ length: count }, (_, at) => {
    const id = Buffer.alloc(32)
    for (let part = 0; part < 8; part += 1) id.writeUInt32LE(word(), part * 4)
    const type = at % 9 === 0 ? null : ['image/png', 'text/html', 'application/json'][dice.below(3)]
    return [id, BigInt(1_000_000 + Math.floor(at / 700)), 2n ** 63n + BigInt(at) * 262_144n, type ?? null, 2]
  })
}

interface ParquetJs {
  readonly ParquetSchema: new (fields: object) => object
  readonly ParquetWriter: {
    openFile(
      schema: object,
      path: string,
    ): Promise<{ appendRow(row: object): Promise<void>; close(): Promise<void> }>
  }
}

/** What DuckDB says of a file: its rows, the sum of heights, the largest offset. */
async function readBy(path: string): Promise<string> {
  const instance = await DuckDBInstance.create()
  const connection = await instance.connect()
  try {
    const sql = `SELECT count(*), sum(height), max(weave_offset), count(content_type) FROM '${path}'`
    return String((await connection.runAndReadAll(sql)).getRowsJson()[0])
  } catch (error) {
    return `unreadable: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)}`
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

async function parquet(folder: string | undefined, count: number, home: string): Promise<void> {
  const rows = rowsOf(count)
  const note = async (name: string, path: string, seconds: number): Promise<void> =>
    say(
      `parquet: ${name}: ${seconds.toFixed(2)} s, ${statSync(path).size} bytes; DuckDB reads ${await readBy(path)}`,
    )
  const ours = join(home, 'ours.parquet')
  const write = (): void => {
    const file = new ParquetFile(ours, columns, 100_000)
    for (const row of rows) file.push(row)
    file.finish()
  }
  write()
  await note('hyparquet-writer, with our row digest', ours, (await secondsOf(write)).seconds)
  const read = await secondsOf(async () => {
    const opened = await openParquet(ours, columns)
    if ('refused' in opened) throw new Error(opened.message)
    let seen = 0
    for await (const batch of opened.batches()) seen += batch.length
    await opened.close()
    return seen
  })
  say(`parquet: hyparquet: reads ${read.made} rows in ${read.seconds.toFixed(2)} s`)
  if (folder === undefined) return
  const { ParquetSchema, ParquetWriter } = (await imported(folder, 'parquetjs-lite/parquet.js')) as ParquetJs
  const theirs = join(home, 'theirs.parquet')
  const optional = { optional: true, compression: 'GZIP' }
  const writeTheirs = async (above: bigint): Promise<void> => {
    const schema = new ParquetSchema({
      id: { type: 'BYTE_ARRAY', ...optional },
      height: { type: 'UINT_64', ...optional },
      weave_offset: { type: 'UINT_64', ...optional },
      content_type: { type: 'UTF8', ...optional },
      format: { type: 'UINT_8', ...optional },
    })
    const writer = await ParquetWriter.openFile(schema, theirs)
    for (const [id, height, weave_offset, content_type, format] of rows) {
      const row = {
        id,
        height: Number(height),
        weave_offset: Number((weave_offset as bigint) - above),
        format,
      }
      await writer.appendRow(content_type === null ? row : { ...row, content_type })
    }
    await writer.close()
  }
  const fault = await writeTheirs(0n).catch((error: unknown) => error)
  say(
    `parquet: parquetjs-lite, offsets above 2^63: ${fault instanceof Error ? fault.message.slice(0, 70) : 'written'}`,
  )
  await writeTheirs(2n ** 63n)
  const { seconds } = await secondsOf(() => writeTheirs(2n ** 63n))
  await note('parquetjs-lite, offsets below 2^53', theirs, seconds)
}

async function torrents(folder: string | undefined): Promise<void> {
  const path = truthPath()
  const { size } = statSync(path)
  const [place, name] = [join(path, '..'), path.split('/').at(-1) ?? '']
  const ours = await secondsOf(async () => hybridTorrent([await hashBandFile(place, name)]))
  const rate = (seconds: number): string =>
    `${(size / 1e6 / seconds).toFixed(0)} MB a second of processor time`
  say(`torrents: ours, versions 1 and 2 and the SHA-256 of the file: ${rate(ours.seconds)}`)
  if (folder === undefined) return
  type Create = (
    path: string,
    options: object,
    done: (error: Error | null, torrent: Uint8Array) => void,
  ) => void
  const create = (await imported(folder, 'create-torrent/index.js')) as Create
  const theirs = await secondsOf(
    () =>
      new Promise<Uint8Array>((made, failed) =>
        create(path, { pieceLength: 2 ** 20 }, (error, torrent) =>
          error === null ? made(torrent) : failed(error),
        ),
      ),
  )
  const isTwo = Buffer.from(theirs.made).includes('meta version')
  say(`torrents: create-torrent, ${isTwo ? 'version 2' : 'version 1 only'}: ${rate(theirs.seconds)}`)
}

/** The records of a band in LMDB: built in one transaction, then looked up in random order. */
async function lookups(count: number, home: string): Promise<void> {
  const path = join(home, 'lmdb')
  mkdirSync(path)
  const table = openLmdb({
    path: join(path, 'data.mdb'),
    keyEncoding: 'binary',
    encoding: 'binary',
    noSync: true,
  })
  const keys = rowsOf(count).map(([id]) => id as Buffer)
  const value = Buffer.alloc(50, 1)
  const built = await secondsOf(() =>
    table.transactionSync(() => {
      for (const key of [...keys].sort(Buffer.compare)) table.putSync(key, value)
    }),
  )
  const find = (): number =>
    keys.reduce((found, key) => found + (table.getBinaryFast(key) === undefined ? 0 : 1), 0)
  find()
  const looked = await secondsOf(find)
  if (looked.made !== count) throw new Error('a record is missing')
  await table.close()
  const { size } = statSync(join(path, 'data.mdb'))
  say(
    `lookups: LMDB: built in ${built.seconds.toFixed(2)} s, ${(size / count).toFixed(0)} bytes a record, ` +
      `${Math.round(count / looked.seconds)} a second of processor time`,
  )
}

const { values } = parseArgs({
  options: {
    help: { type: 'boolean' },
    folder: { type: 'string' },
    rows: { type: 'string', default: '200000' },
  },
})
if (values.help === true) say(help)
else {
  const home = emptyFolder('formats')
  await parquet(values.folder, Number(values.rows), home)
  await torrents(values.folder)
  await lookups(Number(values.rows), home)
  rmSync(home, { recursive: true })
}
