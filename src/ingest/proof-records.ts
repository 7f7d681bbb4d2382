import { type Id, idBytes, idOfBytes } from '../format/id.js'
import type { Hints } from '../source/source-messages.js'

/** The records of the agenda of proofs. Integers and doubles are big-endian, so that keys sort by them. */

/**
 * Lanes of roots, each with its own turns. `named`: content was requested by a name (ArNS). `led`: something named it as the root
 * of a content. `lone`: nobody did, so that it may be no transaction. `ledAgain`, `loneAgain`: after a look that proved nothing.
 */
export const lanes = { named: 0, led: 1, lone: 2, ledAgain: 3, loneAgain: 4 } as const
export type Lane = (typeof lanes)[keyof typeof lanes]

/** What is proven first: content behind names, which many request; then requested content; then what the catalog lists. */
export const priorities = { named: 2, requested: 1, listed: 0 } as const

/** Why a content is on the agenda. */
export interface AgendaWish {
  /** The root that may hold it; its own id where nobody named one. */
  readonly rootId: Id
  readonly hints: Hints
  readonly priority: number
  /** A client named the root, and not who brought the bytes: it may prove them, and is no place that they were read at. */
  readonly isClients?: true
}

/** What is known of a root that contents wait for. */
export interface AgendaRoot {
  readonly lane: Lane
  /** Looks that proved nothing. */
  readonly attempts: number
  /** Milliseconds since 1970. */
  readonly dueMs: number
  /** When the first of its contents came. */
  readonly sinceMs: number
  /** Something named it as the root of another content. */
  readonly isLed: boolean
  /** The index has listed it since it was denied. */
  readonly isIndexed: boolean
}

/** In which lane a root waits, by who named it and how often it was looked at. */
export function laneOf({
  attempts,
  isLed,
  priority,
}: {
  readonly attempts: number
  readonly isLed: boolean
  readonly priority: number
}): Lane {
  if (attempts > 0) return isLed ? lanes.ledAgain : lanes.loneAgain
  if (priority >= priorities.named) return lanes.named
  return isLed ? lanes.led : lanes.lone
}

const rootBytes = 1 + 1 + 4 + 8 + 8
const flag = { led: 1, indexed: 2 }

/** `lane u8, flags u8, attempts u32, due f64, since f64`. */
export function encodeRoot({ lane, attempts, dueMs, sinceMs, isLed, isIndexed }: AgendaRoot): Uint8Array {
  const bytes = Buffer.allocUnsafe(rootBytes)
  bytes.writeUInt8(lane, 0)
  bytes.writeUInt8((isLed ? flag.led : 0) | (isIndexed ? flag.indexed : 0), 1)
  bytes.writeUInt32BE(attempts, 2)
  bytes.writeDoubleBE(dueMs, 6)
  bytes.writeDoubleBE(sinceMs, 14)
  return bytes
}

/** Reads the record of a root. */
export function readRoot(record: Uint8Array): AgendaRoot {
  const bytes = Buffer.from(record.buffer, record.byteOffset, record.byteLength)
  const flags = bytes.readUInt8(1)
  return {
    lane: bytes.readUInt8(0) as Lane,
    attempts: bytes.readUInt32BE(2),
    dueMs: bytes.readDoubleBE(6),
    sinceMs: bytes.readDoubleBE(14),
    isLed: (flags & flag.led) !== 0,
    isIndexed: (flags & flag.indexed) !== 0,
  }
}

/** Bundles inside bundles that are remembered of a path. */
const pathMax = 8
const memberBytes = 32 + 1 + 8 + 8
const unknownPlace = -1
/** Beside the priority: `isClients`. */
const clients = 0x80

/** `root, priority and flag u8, offset f64, size f64` (-1: not known), then the ids of the path. */
export function encodeMember({ rootId, hints, priority, isClients }: AgendaWish): Uint8Array {
  const path = (hints.path ?? []).length <= pathMax ? (hints.path ?? []) : []
  const bytes = Buffer.allocUnsafe(memberBytes + 32 * path.length)
  bytes.set(idBytes(rootId), 0)
  bytes.writeUInt8(priority | (isClients === true ? clients : 0), 32)
  bytes.writeDoubleBE(hints.itemOffset ?? unknownPlace, 33)
  bytes.writeDoubleBE(hints.itemSize ?? unknownPlace, 41)
  for (const [at, id] of path.entries()) bytes.set(idBytes(id), memberBytes + 32 * at)
  return bytes
}

/** Reads the record of a content that waits for its root. */
export function readMember(record: Uint8Array): AgendaWish {
  const bytes = Buffer.from(record.buffer, record.byteOffset, record.byteLength)
  const rootId = idOfBytes(bytes.subarray(0, 32))
  const [itemOffset, itemSize] = [bytes.readDoubleBE(33), bytes.readDoubleBE(41)]
  const path: Id[] = []
  for (let at = memberBytes; at < bytes.length; at += 32) path.push(idOfBytes(bytes.subarray(at, at + 32)))
  const hints: Hints = {
    rootId,
    ...(path.length === 0 ? {} : { path }),
    ...(itemOffset === unknownPlace ? {} : { itemOffset }),
    ...(itemSize === unknownPlace ? {} : { itemSize }),
  }
  const word = bytes.readUInt8(32)
  const wish = { rootId, hints, priority: word & ~clients }
  return (word & clients) === 0 ? wish : { ...wish, isClients: true }
}

/** Root, then id. */
export function memberKey(root: Uint8Array, id: Id): Uint8Array {
  return Buffer.concat([root, idBytes(id)])
}

/** `lane u8, due f64, root`: positive doubles sort like their bytes. */
export function dueKey(lane: Lane, dueMs: number, root: Uint8Array): Uint8Array {
  const bytes = Buffer.allocUnsafe(9 + root.length)
  bytes.writeUInt8(lane, 0)
  bytes.writeDoubleBE(dueMs, 1)
  bytes.set(root, 9)
  return bytes
}

/** When a root is due (ms since 1970), by its key in the order of lanes and times. */
export function readDueKey(key: Uint8Array): { readonly dueMs: number; readonly rootId: Id } {
  const bytes = Buffer.from(key.buffer, key.byteOffset, key.byteLength)
  return { dueMs: bytes.readDoubleBE(1), rootId: idOfBytes(bytes.subarray(9)) }
}
