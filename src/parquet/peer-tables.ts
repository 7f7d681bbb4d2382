/** Exports of other gateways as files: which there are, and their columns by name. */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { FileMetaData, SchemaElement } from 'hyparquet'
import { isRefusal } from '../format/refusal.js'
import type { Value } from './l1-layout.js'
import { openTable, ParquetFault, type ParquetTable, type TableReading } from './parquet-reader.js'

/** `bytes` is a Uint8Array, `whole` a bigint of any width, `flag` a boolean; each may be null. */
type Kind = 'bytes' | 'whole' | 'flag'

/**
 * The columns that are read, by name: other gateways add columns and change the widths of numbers from version to version. A name
 * with a question mark may be absent, and is null then; two names are two names of the same column.
 */
export const peerColumns = {
  blocks: [
    ['indep_hash', 'bytes'],
    ['height', 'whole'],
    ['previous_block', 'bytes'],
    ['nonce?', 'bytes'],
    ['hash?', 'bytes'],
    ['block_timestamp', 'whole'],
    ['tx_count', 'whole'],
    ['block_size', 'whole'],
  ],
  transactions: [
    ['id', 'bytes'],
    ['block_transaction_index', 'whole'],
    ['is_data_item', 'flag'],
    ['target', 'bytes'],
    ['quantity', 'whole'],
    ['reward', 'whole'],
    ['anchor', 'bytes'],
    ['data_size', 'whole'],
    ['format', 'whole'],
    ['height', 'whole'],
    ['owner_address', 'bytes'],
    ['data_root', 'bytes'],
    ['parent|parent_id', 'bytes'],
    ['offset', 'whole'],
    ['data_offset', 'whole'],
    ['owner?', 'bytes'],
    ['signature_type?', 'whole'],
    ['root_transaction_id', 'bytes'],
    ['root_parent_offset', 'whole'],
  ],
  tags: [
    ['height', 'whole'],
    ['id', 'bytes'],
    ['tag_index', 'whole'],
    ['tag_name', 'bytes'],
    ['tag_value', 'bytes'],
  ],
} as const satisfies Record<string, readonly (readonly [name: string, kind: Kind])[]>

export type PeerTable = keyof typeof peerColumns

/** Where `height` stands in each table. */
export const heightColumn = { blocks: 1, transactions: 9, tags: 0 } as const

/** A table of a peer's export: its files in the order of heights. */
export interface PeerFiles {
  readonly table: PeerTable
  readonly paths: readonly string[]
}

/**
 * The files of a table below `base`: `{table}/data/height={from}-{to}/{table}_{first}_{last}[_{part}]_{run}.parquet`. Where
 * heights were exported more than once, the newest run is taken. `above`: files that end at this height or below are left out.
 */
export async function peerFiles(base: string, table: PeerTable, above: number): Promise<PeerFiles> {
  const root = join(base, table, 'data')
  const folders = await readdir(root).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  const files: PeerFile[] = []
  for (const folder of folders.filter((name) => /^height=\d+-\d+$/.test(name)))
    for (const name of await readdir(join(root, folder))) {
      const file = await fileOf(table, join(root, folder), name)
      if (file !== undefined && file.last > above) files.push(file)
    }
  return { table, paths: newest(files).map(({ path }) => path) }
}

interface PeerFile {
  readonly path: string
  readonly first: number
  readonly last: number
  readonly part: number
  readonly run: string
  readonly modifiedMs: number
}

async function fileOf(table: PeerTable, folder: string, name: string): Promise<PeerFile | undefined> {
  const [whole, first, last, part = '0', run = ''] =
    new RegExp(`^${table}_(\\d{1,9})_(\\d{1,9})(?:_(\\d{1,6}))?_([\\w.-]+)\\.parquet$`).exec(name) ?? []
  if (whole === undefined) return undefined
  const path = join(folder, name)
  const { mtimeMs: modifiedMs } = await stat(path)
  return { path, first: Number(first), last: Number(last), part: Number(part), run, modifiedMs }
}

/** Without files of older runs over the same heights; in the order of heights and parts. */
function newest(files: readonly PeerFile[]): PeerFile[] {
  const runs = new Map<string, PeerFile[]>()
  for (const file of files) {
    const key = `${file.run} ${file.first} ${file.last}`
    runs.set(key, [...(runs.get(key) ?? []), file])
  }
  const modified = (run: readonly PeerFile[]): number => Math.max(...run.map((one) => one.modifiedMs))
  const taken: PeerFile[][] = []
  for (const run of [...runs.values()].sort((one, other) => modified(other) - modified(one))) {
    const [{ first, last } = { first: 0, last: 0 }] = run
    if (!taken.some(([other]) => other !== undefined && first <= other.last && other.first <= last))
      taken.push(run)
  }
  return taken.flat().sort((one, other) => one.first - other.first || one.part - other.part)
}

/** The rows of all files of a table, one file open at a time. Throws `ParquetFault` where a file cannot be read. */
export function peerRows({ table, paths }: PeerFiles): Pick<ParquetTable, 'batches'> {
  return {
    async *batches() {
      for (const path of paths) {
        const file = await openPeer(table, path)
        try {
          for await (const rows of file.batches()) if (rows.length > 0) yield rows
        } finally {
          await file.close()
        }
      }
    },
  }
}

/** How many rows the files have. Throws `ParquetFault` where one cannot be read. */
export async function peerRowCount({ table, paths }: PeerFiles): Promise<number> {
  let rows = 0
  for (const path of paths) {
    const file = await openPeer(table, path)
    rows += file.rows
    await file.close()
  }
  return rows
}

async function openPeer(table: PeerTable, path: string): Promise<ParquetTable> {
  const file = await openTable(path, readingOf(table))
  if (isRefusal(file)) throw new ParquetFault(file.message)
  return file
}

const physical: Readonly<Record<Kind, readonly string[]>> = {
  bytes: ['BYTE_ARRAY', 'FIXED_LEN_BYTE_ARRAY'],
  flag: ['BOOLEAN'],
  whole: ['INT32', 'INT64', 'FIXED_LEN_BYTE_ARRAY', 'BYTE_ARRAY'],
}

function readingOf(table: PeerTable): TableReading {
  const wanted = peerColumns[table].map(([words, kind]) => {
    return { kind, isOptional: words.endsWith('?'), names: words.replace('?', '').split('|') }
  })
  /** The place of each wanted column among those that are read; -1: the file has none of its names. */
  let places: number[] = []
  const found = ({ schema }: FileMetaData): (SchemaElement | undefined)[] => {
    return wanted.map(({ names }) => schema.slice(1).find(({ name }) => names.includes(name)))
  }
  return {
    fault(metadata) {
      for (const [at, element] of found(metadata).entries()) {
        const { kind, isOptional, names } = wanted[at] ?? { kind: 'bytes', isOptional: true, names: [] }
        if (element === undefined && isOptional) continue
        if (element === undefined) return `it has no column ${names.join(' or ')}`
        const isPlain = element.num_children === undefined && element.repetition_type !== 'REPEATED'
        const isWhole = kind !== 'whole' || (element.scale ?? 0) === 0
        if (!isPlain || !isWhole || !physical[kind].includes(element.type ?? ''))
          return `its column ${element.name} is not what other gateways write`
      }
      return undefined
    },
    columns(metadata) {
      const elements = found(metadata)
      const names = elements.flatMap((element) => element?.name ?? [])
      places = elements.map((element) => (element === undefined ? -1 : names.indexOf(element.name)))
      return names
    },
    row(stored, path) {
      return wanted.map(({ kind, names }, at) =>
        plainValue(stored[places[at] ?? -1], kind, `${path}: ${names[0]}`),
      )
    },
  }
}

function plainValue(stored: unknown, kind: Kind, where: string): Value {
  if (stored === null || stored === undefined) return null
  if (kind === 'flag' && typeof stored === 'boolean') return stored
  if (kind === 'bytes' && stored instanceof Uint8Array) return stored
  if (kind === 'whole') {
    // No column of these tables is below zero: numbers of 32 and 64 bits are stored unsigned.
    if (typeof stored === 'number') return BigInt(stored >>> 0)
    if (typeof stored === 'bigint') return BigInt.asUintN(64, stored)
    if (stored instanceof Uint8Array && stored.length <= 16)
      return BigInt(`0x0${Buffer.from(stored).toString('hex')}`)
  }
  throw new ParquetFault(`${where} holds what it should not`)
}
