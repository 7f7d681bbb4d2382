import { chunkSizeMax } from '../format/chunk.js'
import type { ReadingPlace } from '../format/reading-place.js'
import type { Environment } from '../store/lmdb.js'
import { Agenda, partyBytes } from './agenda.js'

/** What is on record of a bundle that is still to be opened. */
export interface BundleTask {
  /** SHA-256 of the key that signed the transaction; absent: an order named the id alone. */
  readonly owner?: Uint8Array | undefined
  /** Offset in the data of a byte that no node had. */
  readonly missing?: number | undefined
  /** Bytes of data that the transaction states. */
  readonly sizeBytes?: number | undefined
  /** Where the reading goes on: all items before it are in the index. */
  readonly place?: ReadingPlace | undefined
  /** In its last turn no item came to its end. */
  readonly isStuck?: boolean | undefined
}

const ownerBytes = 32

/** Bundles of at most so many bytes have a line of their own. */
const smallMaxBytes = 4 * chunkSizeMax

/**
 * The record: the owner (32 bytes, zeros where it is not known), then numbers (f64 each, NaN for none): the offset of a missing
 * byte, bytes of data, of the place where the reading goes on the count of items, the index and the offset, and 1 where it was
 * stuck.
 */
export function encodeBundleTask({ owner, missing, sizeBytes, place, isStuck }: BundleTask): Uint8Array {
  const numbers = [missing, sizeBytes, place?.count, place?.index, place?.offset, isStuck ? 1 : undefined]
  const bytes = Buffer.alloc(ownerBytes + 8 * numbers.length)
  if (owner !== undefined) bytes.set(owner)
  for (const [at, number] of numbers.entries()) bytes.writeDoubleBE(number ?? Number.NaN, ownerBytes + 8 * at)
  return bytes
}

/** Reads the record; those of earlier releases end before numbers that they do not know, or have not even an owner. */
export function readBundleTask(value: Uint8Array): BundleTask {
  const bytes = Buffer.from(value)
  if (bytes.length < ownerBytes) return {}
  const number = (at: number): number | undefined => {
    const from = ownerBytes + 8 * at
    const read = from + 8 <= bytes.length ? bytes.readDoubleBE(from) : Number.NaN
    return Number.isNaN(read) ? undefined : read
  }
  const [missing, sizeBytes, count, index, offset, stuck] = [0, 1, 2, 3, 4, 5].map(number)
  const isPlaced = count !== undefined && index !== undefined && offset !== undefined
  const place = isPlaced ? { count, index, offset } : undefined
  const task = { owner: bytes.subarray(0, ownerBytes), missing, sizeBytes, place }
  return stuck === undefined ? task : { ...task, isStuck: true }
}

function lineOf(value: Uint8Array): 'small' | 'stuck' | 'first' {
  const { isStuck, sizeBytes = Number.POSITIVE_INFINITY } = readBundleTask(value)
  return isStuck === true ? 'stuck' : sizeBytes <= smallMaxBytes ? 'small' : 'first'
}

/**
 * Bundles that are still to be opened, by turns of the owners of their transactions. Small ones have a line of their own, and so
 * have those that were stuck: strangers can have any number of others that fail.
 */
export function bundleAgenda(environment: Environment, tasksMax: number): Agenda {
  return new Agenda(environment, 'bundles', tasksMax, {
    partyOf: (value) => value.subarray(0, partyBytes),
    lineOf,
  })
}
