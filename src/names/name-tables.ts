import { fieldsOf } from '../chain/json-fields.js'
import { type Environment, openEnvironment, type Table } from '../store/lmdb.js'
import { parseName } from './name.js'
import { readRecord } from './name-record.js'
import type { NameRecord } from './names-port.js'

export const versionKey = Buffer.from('version')
/** The version at which `bases` was written last: a program that knows no such table changes the other one alone. */
export const basesVersionKey = Buffer.from('bases-version')

export interface NameTables {
  readonly environment: Environment
  /** Full name to its record as JSON. */
  readonly records: Table
  /** How often names changed. */
  readonly state: Table
  /** Keys alone: a name, or `*` for any, a line feed and the address of a wallet that may set it. */
  readonly grants: Table
  /** Full name to the time (u64, milliseconds) of its last change: what was signed before that is not carried out. */
  readonly changed: Table
  /** Base name, a line feed and the full name: where the undernames of one name are. */
  readonly bases: Table
}

/** The key of a full name in `bases`. */
export function baseKey(full: string): Buffer {
  return Buffer.from(`${parseName(full)?.basename ?? full}\n${full}`)
}

/** The tables of local names; those that are missing are made. `open`: opens the environment. */
export function openNameTables(path: string, open = openEnvironment): NameTables {
  const environment = open(path, 7)
  const table = (name: string): Table => environment.table(name)
  return {
    environment,
    records: table('records'),
    state: table('state'),
    grants: table('grants'),
    changed: table('changed'),
    bases: table('bases'),
  }
}

/** Addresses in hexadecimal digits mean the same in any case of letters. */
export function grantKey(name: string, address: string): Buffer {
  const spelled = /^0x/i.test(address) ? address.toLowerCase() : address
  return Buffer.from(`${name}\n${spelled}`)
}

/** A counter of these tables; 0 before it was written. */
export function readVersion({ state }: NameTables, key = versionKey): number {
  const bytes = state.get(key)
  return bytes === undefined ? 0 : Buffer.from(bytes).readUInt32BE()
}

/** Reads the record of a name; undefined where there is none, or none that can be read. */
export function decodeRecord(bytes: Uint8Array | undefined): NameRecord | undefined {
  const fields = bytes === undefined ? undefined : fieldsOf(Buffer.from(bytes).toString('utf8'))
  return fields === undefined ? undefined : readRecord(fields)
}
