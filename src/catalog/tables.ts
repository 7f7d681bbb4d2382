import { type Environment, openEnvironment, type Table } from '../store/lmdb.js'
import { readTouchKey } from './catalog-record.js'

/** The tables of the catalog's environment. */
export interface CatalogTables {
  readonly environment: Environment
  /** id (32 bytes) -> attribute record. */
  readonly attributes: Table
  /** digest (32 bytes) -> blob record, for every blob on disk. */
  readonly blobs: Table
  /** last use and digest -> nothing: blobs in order of last use. */
  readonly touches: Table
  /** Digest of a bundle and a stretch of it -> records of its judged items (judged-items.ts). */
  readonly judged: Table
  /** id (32 bytes) -> nothing: ids with something left to prove. */
  readonly unsettled: Table
  /** name -> value: the layout's version, and sums. */
  readonly meta: Table
}

/** These tables and those of the index (index-tables.ts). */
const tablesMax = 32

const layout = 'sluice catalog 1'

/** Opens the catalog in folder `path`, by `open`. Throws where the folder holds a catalog of another layout. */
export function openCatalogTables(path: string, open = openEnvironment): CatalogTables {
  const environment = open(path, tablesMax)
  const tables = {
    environment,
    attributes: environment.table('attributes'),
    blobs: environment.table('blobs'),
    touches: environment.table('touches'),
    judged: environment.table('judged'),
    unsettled: environment.table('unsettled'),
    meta: environment.table('meta'),
  }
  const key = Buffer.from('layout')
  const found = tables.meta.get(key)
  if (found === undefined) environment.write(() => tables.meta.put(key, Buffer.from(layout)))
  else if (Buffer.from(found).toString('utf8') !== layout) {
    throw new Error(`${path} holds a catalog of another layout: ${Buffer.from(found).toString('utf8')}`)
  }
  return tables
}

/** When a blob was used last; undefined where there is none. */
export function lastTouchMs({ touches }: CatalogTables): number | undefined {
  const last = touches.floor(Buffer.alloc(38, 0xff))
  return last === undefined ? undefined : readTouchKey(last.key).touchedMs
}

const sumKey = Buffer.from('blob bytes')

/** Bytes of all blobs on record. */
export function readBlobBytes(tables: CatalogTables): number {
  const found = tables.meta.get(sumKey)
  return found === undefined ? 0 : Buffer.from(found).readDoubleLE(0)
}

/** Changes the sum of blob bytes. Only inside `write`. */
export function addBlobBytes(tables: CatalogTables, change: number): void {
  const bytes = Buffer.allocUnsafe(8)
  bytes.writeDoubleLE(readBlobBytes(tables) + change)
  tables.meta.put(sumKey, bytes)
}
