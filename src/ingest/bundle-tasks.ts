import type { Environment } from '../store/lmdb.js'
import { Agenda, partyBytes } from './agenda.js'

/** What is on record of a bundle that is still to be opened. */
export interface BundleTask {
  /** SHA-256 of the key that signed the transaction; absent: an order named the id alone. */
  readonly owner?: Uint8Array
  /** Offset in the data of a byte that no node had. */
  readonly missing?: number
}

const ownerBytes = 32

/** The record: the owner (32 bytes, zeros where it is not known), and the offset (f64) where a byte is missing. */
export function encodeBundleTask({ owner, missing }: BundleTask): Uint8Array {
  const bytes = Buffer.alloc(missing === undefined ? ownerBytes : ownerBytes + 8)
  if (owner !== undefined) bytes.set(owner)
  if (missing !== undefined) bytes.writeDoubleBE(missing, ownerBytes)
  return bytes
}

/** Reads the record; the empty one of earlier releases says nothing. */
export function readBundleTask(value: Uint8Array): BundleTask {
  const bytes = Buffer.from(value)
  if (bytes.length < ownerBytes) return {}
  const owner = bytes.subarray(0, ownerBytes)
  return bytes.length < ownerBytes + 8 ? { owner } : { owner, missing: bytes.readDoubleBE(ownerBytes) }
}

/** Bundles that are still to be opened, by turns of the owners of their transactions. */
export function bundleAgenda(environment: Environment, tasksMax: number): Agenda {
  return new Agenda(environment, 'bundles', tasksMax, (value) => value.subarray(0, partyBytes))
}
