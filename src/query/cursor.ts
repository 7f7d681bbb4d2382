import type { BlockRecord } from '../catalog/block-record.js'
import type { Row } from '../catalog/row.js'
import {
  arrivalMax,
  arrivalOf,
  arrivalUnknown,
  heightOf,
  indexOf,
  isItemKey,
  pendingStart,
  rowKey,
  rowKeyBytes,
  rowKeyIdBytes,
  writePendingKey,
} from '../catalog/row-key.js'
import { encodeBase64url } from '../format/base64url.js'
import { type Id, idBytes, parseId } from '../format/id.js'

/**
 * Cursors: base64url of a JSON list, the same list that other gateways of this network write, so that a client can
 * continue here with a cursor of theirs. A cursor is a position in chain order, not a row: it stays valid when rows
 * move, disappear or are added, and marks where a page ended early. Behind the list of the network stands what is
 * needed to find out which rows have moved since (`Marks`); each may be null or left out.
 *
 *     [height or null, index in the block or null, is it an item, id, first seen,
 *      number of arrival, height of a block, beginning of its id, arrivals that were given or how often blocks were dropped]
 */
const bytesMax = 512
const indexMax = 0x7f_ffff
/** Characters of a block's id: 66 bits. */
const blockIdChars = 11
/** Buffer for writing a cursor; no cursor is longer. */
const scratch = Buffer.alloc(bytesMax)

/** A block by its height and the beginning of its id. */
export interface BlockMark {
  readonly height: number
  readonly id: string
}

/** What of the chain was so when a cursor was written. */
export interface Marks {
  /** The highest block, for a row that is in no block; else the block of the row, where a fork could still replace it. */
  readonly block?: BlockMark | undefined
  /** Rows in no block with numbers up to this were on earlier pages, oldest first. */
  readonly given?: number | undefined
  /** How often blocks had been dropped, for a row that is in no block. */
  readonly forks?: number | undefined
}

/** The content of a cursor. */
export interface Position extends Marks {
  readonly key: Buffer
  /**
   * Id of a row that was in no block, from an earlier version of this program or another gateway. Its place is not known, so the
   * key is behind all others.
   */
  readonly vague?: Uint8Array | undefined
}

/** What a cursor keeps of a block: its height, and the beginning of its id. */
export function blockMark({ height, id }: Pick<BlockRecord, 'height' | 'id'>): BlockMark {
  return { height, id: id.slice(0, blockIdChars) }
}

function listOf(cursor: string): unknown[] | undefined {
  if (cursor.length > bytesMax || !/^[A-Za-z0-9_+/-]*={0,2}$/.test(cursor)) return undefined
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, 'base64').toString('utf8'))
    return Array.isArray(value) ? value : undefined
  } catch {
    // Not JSON, so no cursor.
    return undefined
  }
}

function isCount(value: unknown, max: number): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= max
}

/** The cursor of a row. */
export function rowCursor(row: Row, marks: Marks): string {
  return written(row.key, encodeBase64url(row.id), row.seenSeconds, marks)
}

/**
 * The cursor of a place that need not be a row's (a key of 16 bytes). It has the shape of a row's cursor, with as much of the id
 * as the key has, and zeros.
 */
export function placeCursor(key: Uint8Array, marks: Marks): string {
  const id = Buffer.alloc(32)
  id.set(key.subarray(rowKeyBytes - rowKeyIdBytes), 0)
  return written(key, encodeBase64url(id), null, marks)
}

function written(key: Uint8Array, id: string, seen: number | null, marks: Marks): string {
  const { block } = marks
  const [height, arrival] = [heightOf(key), arrivalOf(key)]
  const place = height === undefined ? 'null,null' : `${height},${indexOf(key)}`
  let more = ''
  const last = arrival === undefined ? marks.given : marks.forks
  if (arrival !== undefined || block !== undefined || last !== undefined) {
    more = `,${arrival ?? null},${block?.height ?? null},${block === undefined ? null : `"${block.id}"`}`
    if (last !== undefined) more += `,${last}`
  }
  const size = scratch.write(`[${place},${isItemKey(key)},"${id}",${seen}${more}]`, 'latin1')
  return scratch.toString('base64url', 0, size)
}

/** What a cursor stands for; undefined where it is not a cursor. */
export function readRowCursor(cursor: string): Position | undefined {
  const [height, index, isItem, id, , arrival, blockHeight, blockId, last] = listOf(cursor) ?? []
  const parsed = typeof id === 'string' ? parseId(id) : undefined
  if (parsed === undefined || !(typeof isItem === 'boolean' || isItem === 0 || isItem === 1)) return undefined
  if (!isCount(index ?? 0, indexMax)) return undefined
  const isPending = height === null || height === undefined
  if (!isPending && !isCount(height, pendingStart - 1)) return undefined
  const isMarked = isCount(blockHeight, pendingStart - 1) && typeof blockId === 'string' && blockId !== ''
  return {
    key: isPending
      ? keyAt(isCount(arrival, arrivalMax) ? arrival : arrivalUnknown, Boolean(isItem), parsed)
      : rowKey(height, Number(index ?? 0), Boolean(isItem), idBytes(parsed)),
    vague: isPending && !isCount(arrival, arrivalMax) ? idBytes(parsed) : undefined,
    block: isMarked ? { height: blockHeight, id: blockId.slice(0, blockIdChars) } : undefined,
    given: !isPending && isCount(last, arrivalMax) ? last : undefined,
    forks: isPending && isCount(last, 2 ** 32 - 1) ? last : undefined,
  }
}

function keyAt(arrival: number, isItem: boolean, id: Id): Buffer {
  return writePendingKey(Buffer.alloc(rowKeyBytes), arrival, isItem, idBytes(id))
}

/** The cursor of a block: `[height]`. */
export function blockCursor(height: number): string {
  return encodeBase64url(Buffer.from(JSON.stringify([height])))
}

/** The height that a cursor stands for; undefined where it is not a cursor. */
export function readBlockCursor(cursor: string): number | undefined {
  const [height] = listOf(cursor) ?? []
  return isCount(height, pendingStart - 1) ? height : undefined
}
