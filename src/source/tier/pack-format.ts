import { type Id, idBytes, idOfBytes, parseId } from '../../format/id.js'

/**
 * Small objects lie in packs. A pack is their bytes, one behind another. What lies where is in its directory, an object of its
 * own, with a number: the first is 1, and none is left out. A directory may also say where items lie in a bundle that is an
 * object of its own, or lies in a pack itself. Integers are little-endian.
 *
 *     "SLPACKD1" | length of the name u8 | name | count u32 | entries
 *     name: that of a pack, or "o-" and the id of an object
 *     entry: id 32 | offset u48 | size u48 | bytes before the payload u32 | root 32 | offset in the root u48 |
 *            length of the content type u8 | content type
 *
 * A root of 32 zero bytes: none is known.
 */
const magic = Buffer.from('SLPACKD1')

/** Where an object lies in its pack. */
export interface PackPlace {
  readonly offset: number
  /** Bytes of the object: a header, where there is one, and the payload. */
  readonly sizeBytes: number
  /** Bytes before the payload: those of the item's header, or none. */
  readonly dataStart: number
  /** '' where it is not known. */
  readonly contentType: string
  /** Where the item lies in its root transaction, as who put it here proved. A hint for everybody else. */
  readonly root?: PackedRoot
}

export interface PackedRoot {
  readonly id: Id
  /** Where the whole item begins in the root's data. */
  readonly itemOffset: number
}

export interface PackEntry extends PackPlace {
  readonly id: Id
}

export interface PackListing {
  /** Name of the pack, or of the object (`objectName`). */
  readonly pack: string
  readonly entries: readonly PackEntry[]
}

/** Bounds of what is written, and of what is believed of others. */
export const packMaxBytes = 8 * 1024 * 1024
export const entriesMax = 65_536
/** Entries of one directory that this machine writes, at most: each machine writes all of its own in one go. */
export const entriesUsualMax = 8192
/** A directory that others wrote is read up to this. */
export const listingMaxBytes = 24 * 1024 * 1024

const placeBytes = 6 + 6 + 4 + 32 + 6 + 1
const fixedBytes = 32 + placeBytes
const noRoot = Buffer.alloc(32)

/** The name that stands for an object of its own. */
export function objectName(id: Id): string {
  return `o-${id}`
}

/** The id of the object that a name stands for; undefined: it is the name of a pack. */
export function namedObject(name: string): Id | undefined {
  return name.startsWith('o-') ? parseId(name.slice(2)) : undefined
}

/** A place as it stands in a directory, and in the records on disk. */
export function encodePackPlace({ offset, sizeBytes, dataStart, contentType, root }: PackPlace): Buffer {
  const type = Buffer.from(contentType, 'latin1').subarray(0, 255)
  const bytes = Buffer.alloc(placeBytes + type.length)
  bytes.writeUIntLE(offset, 0, 6)
  bytes.writeUIntLE(sizeBytes, 6, 6)
  bytes.writeUInt32LE(dataStart, 12)
  if (root !== undefined) {
    bytes.set(idBytes(root.id), 16)
    bytes.writeUIntLE(root.itemOffset, 48, 6)
  }
  bytes.writeUInt8(type.length, 54)
  type.copy(bytes, placeBytes)
  return bytes
}

/** The place at `at`; undefined where it is cut off, or says what cannot be. */
export function decodePackPlace(bytes: Buffer, at: number): PackPlace | undefined {
  if (at + placeBytes > bytes.length) return undefined
  const offset = bytes.readUIntLE(at, 6)
  const sizeBytes = bytes.readUIntLE(at + 6, 6)
  const dataStart = bytes.readUInt32LE(at + 12)
  const rootId = bytes.subarray(at + 16, at + 48)
  const typeEnd = at + placeBytes + bytes.readUInt8(at + 54)
  if (typeEnd > bytes.length || dataStart > sizeBytes) return undefined
  const contentType = bytes.toString('latin1', at + placeBytes, typeEnd)
  // It becomes a header line.
  if (!/^[\x20-\x7e]*$/.test(contentType)) return undefined
  const place = { offset, sizeBytes, dataStart, contentType }
  if (rootId.equals(noRoot)) return place
  return { ...place, root: { id: idOfBytes(rootId), itemOffset: bytes.readUIntLE(at + 48, 6) } }
}

/** The bytes of a directory. */
export function encodeListing({ pack, entries }: PackListing): Buffer {
  const name = Buffer.from(pack, 'latin1')
  const count = Buffer.alloc(4)
  count.writeUInt32LE(entries.length)
  const parts = entries.flatMap((entry) => [idBytes(entry.id), encodePackPlace(entry)])
  return Buffer.concat([magic, Uint8Array.of(name.length), name, count, ...parts])
}

/** Reads a directory; undefined where it is malformed: nothing of it is believed then. */
export function decodeListing(bytes: Buffer): PackListing | undefined {
  const head = magic.length + 1
  if (bytes.length < head || !bytes.subarray(0, magic.length).equals(magic)) return undefined
  const nameEnd = head + bytes.readUInt8(magic.length)
  if (bytes.length < nameEnd + 4) return undefined
  const pack = bytes.toString('latin1', head, nameEnd)
  const count = bytes.readUInt32LE(nameEnd)
  if (!/^([0-9a-f]{1,64}|o-[\w-]{43})$/.test(pack) || count > entriesMax || count * fixedBytes > bytes.length)
    return undefined
  const entries: PackEntry[] = []
  let at = nameEnd + 4
  for (let number = 0; number < count; number += 1) {
    const place = at + fixedBytes > bytes.length ? undefined : decodePackPlace(bytes, at + 32)
    if (place === undefined) return undefined
    entries.push({ id: idOfBytes(bytes.subarray(at, at + 32)), ...place })
    at += fixedBytes + place.contentType.length
  }
  return at === bytes.length ? { pack, entries } : undefined
}
