import { crc32 } from 'node:zlib'
import { bufferOf } from '../format/buffer-of.js'
import { type Id, idBytes, idOfBytes } from '../format/id.js'
import type { Table } from '../store/lmdb.js'
import type { ItemPlace } from './attributes.js'

/**
 * Items of stored bundles that were checked when their bundle was opened: the owner signed the bytes at this place, and they have
 * this SHA-256. So an item is served from its bundle without another check.
 *
 * A record, little-endian: `offset of the item in the root's data f64, its size f64, size of its header u32, SHA-256 of its
 * payload (32), id (32), sum u32`. The sum is the CRC-32 of the bundle's digest and of all before it: a record in which a bit
 * changed on the disk, or which came to lie with another bundle, is none. The table has them by the bundle's digest and the
 * stretch of the bundle that they begin in, in order; they go with the bundle.
 */
const recordBytes = 88
const sizeAt = 8
const headerAt = 16
const digestAt = 20
const idAt = 52
const sumAt = 84

/** So much of a bundle has its records in one value: as much as a chunk. */
const stretchBytes = 262_144

/** An item whose owner signed it, where it lies in a bundle. */
export interface JudgedItem {
  readonly id: Id
  readonly place: Pick<ItemPlace, 'rootItemOffset' | 'itemSize' | 'headerSize'>
  /** SHA-256 of the payload. */
  readonly digest: Uint8Array
}

/** Records of items that lie in the bundle with this digest. */
export function packJudged(bundle: Uint8Array, items: readonly JudgedItem[]): Uint8Array {
  const packed = Buffer.alloc(items.length * recordBytes)
  const seed = crc32(bundle)
  for (const [at, { id, place, digest }] of items.entries()) {
    const record = packed.subarray(at * recordBytes, (at + 1) * recordBytes)
    record.writeDoubleLE(place.rootItemOffset, 0)
    record.writeDoubleLE(place.itemSize, sizeAt)
    record.writeUInt32LE(place.headerSize, headerAt)
    record.set(digest, digestAt)
    record.set(idBytes(id), idAt)
    record.writeUInt32LE(crc32(record.subarray(0, sumAt), seed), sumAt)
  }
  return packed
}

function keyOf(bundle: Uint8Array, offset: number): Buffer {
  const key = Buffer.allocUnsafe(36)
  key.set(bundle)
  key.writeUInt32BE(Math.min(Math.floor(offset / stretchBytes), 0xffff_ffff), 32)
  return key
}

const offsetOf = (records: Buffer, at: number): number => records.readDoubleLE(at * recordBytes)

/** Adds packed records to those of a bundle. Only inside `write`. */
export function addJudged(table: Table, bundle: Uint8Array, packed: Uint8Array): void {
  const stretches = new Map<string, { readonly key: Buffer; readonly records: Map<number, Buffer> }>()
  const records = bufferOf(packed)
  for (let at = 0; (at + 1) * recordBytes <= records.length; at += 1) {
    const offset = offsetOf(records, at)
    const key = keyOf(bundle, offset)
    const name = key.toString('latin1', 32)
    const stretch = stretches.get(name) ?? { key, records: before(table, key) }
    stretches.set(name, stretch)
    stretch.records.set(offset, records.subarray(at * recordBytes, (at + 1) * recordBytes))
  }
  for (const { key, records: found } of stretches.values()) {
    const sorted = [...found].sort(([one], [other]) => one - other)
    table.put(key, Buffer.concat(sorted.map(([, record]) => record)))
  }
}

/** The records of a stretch so far, by their offsets. */
function before(table: Table, key: Buffer): Map<number, Buffer> {
  const found = table.get(key)
  const known = found === undefined ? Buffer.alloc(0) : bufferOf(found)
  return new Map(
    Array.from({ length: Math.floor(known.length / recordBytes) }, (_, at) => [
      offsetOf(known, at),
      known.subarray(at * recordBytes, (at + 1) * recordBytes),
    ]),
  )
}

/** Forgets all that is known of a bundle. Only inside `write`. */
export function dropJudged(table: Table, bundle: Uint8Array): void {
  const end = Buffer.concat([bundle, Buffer.alloc(5, 0xff)])
  const keys = [...table.keys({ start: keyOf(bundle, 0), end })].map((key) => Buffer.from(key))
  for (const key of keys) table.remove(key)
}

/** All items that were judged in the bundle with this digest; damaged records are left out. Copies. */
export function* listJudged(table: Table, bundle: Uint8Array): Generator<JudgedItem, undefined> {
  const end = Buffer.concat([bundle, Buffer.alloc(5, 0xff)])
  const seed = crc32(bundle)
  for (const key of [...table.keys({ start: keyOf(bundle, 0), end })]) {
    const records = bufferOf(table.get(key) ?? new Uint8Array(0))
    for (let at = 0; (at + 1) * recordBytes <= records.length; at += 1) {
      const record = records.subarray(at * recordBytes, (at + 1) * recordBytes)
      if (crc32(record.subarray(0, sumAt), seed) !== record.readUInt32LE(sumAt)) continue
      const place = {
        rootItemOffset: record.readDoubleLE(0),
        itemSize: record.readDoubleLE(sizeAt),
        headerSize: record.readUInt32LE(headerAt),
      }
      yield { id: idOfBytes(record.subarray(idAt, sumAt)), place, digest: record.subarray(digestAt, idAt) }
    }
  }
  return undefined
}

/**
 * The SHA-256 of the payload of `id`, where a check found it at exactly this place in the bundle with this digest. Undefined
 * without such a check, or where the record is damaged. The bytes are a copy.
 */
export function findJudged(
  table: Table,
  bundle: Uint8Array,
  id: Id,
  place: JudgedItem['place'],
): Uint8Array | undefined {
  const { rootItemOffset, itemSize, headerSize } = place
  const found = table.view(keyOf(bundle, rootItemOffset))
  if (found === undefined) return undefined
  const records = bufferOf(found)
  let low = 0
  let high = Math.floor(records.length / recordBytes)
  while (low < high) {
    const middle = (low + high) >> 1
    if (offsetOf(records, middle) < rootItemOffset) low = middle + 1
    else high = middle
  }
  const record = records.subarray(low * recordBytes, (low + 1) * recordBytes)
  if (record.length < recordBytes || record.readDoubleLE(0) !== rootItemOffset) return undefined
  if (record.readDoubleLE(sizeAt) !== itemSize || record.readUInt32LE(headerAt) !== headerSize)
    return undefined
  if (crc32(record.subarray(0, sumAt), crc32(bundle)) !== record.readUInt32LE(sumAt)) return undefined
  if (Buffer.compare(record.subarray(idAt, sumAt), idBytes(id)) !== 0) return undefined
  return new Uint8Array(record.subarray(digestAt, idAt))
}
