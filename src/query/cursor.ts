import type { Row } from '../catalog/row.js'
import {
  heightOf,
  indexOf,
  isItemKey,
  pendingHeight,
  rowKey,
  rowKeyBytes,
  rowKeyIdBytes,
} from '../catalog/row-key.js'
import { encodeBase64url } from '../format/base64url.js'
import { idBytes, parseId } from '../format/id.js'

/**
 * Cursors: base64url of a JSON list, the same list that other gateways of this network write, so that a client can
 * continue here with a cursor of theirs. A cursor is a position in chain order, not a row: it stays valid when rows
 * move, disappear or are added, and marks where a page ended early.
 */
const bytesMax = 512
const indexMax = 0x7f_ffff
/** Buffer for writing a cursor; no cursor is longer. */
const scratch = Buffer.alloc(bytesMax)

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

/** The cursor of a row: `[height or null, index in the block or null, is it an item, id, first seen]`. */
export function rowCursor(row: Row): string {
  const { height, index, isItem, id, seenSeconds } = row
  const place = height === undefined ? 'null,null' : `${height},${index}`
  const size = scratch.write(`[${place},${isItem},"${encodeBase64url(id)}",${seenSeconds}]`, 'latin1')
  return scratch.toString('base64url', 0, size)
}

/**
 * The cursor of a place that need not be a row's (a key of 16 bytes): of the same shape as that of a row, its id as much of it as
 * the key has and zeros.
 */
export function placeCursor(key: Uint8Array): string {
  const id = Buffer.alloc(32)
  id.set(key.subarray(rowKeyBytes - rowKeyIdBytes), 0)
  const place = [heightOf(key) ?? null, indexOf(key), isItemKey(key), encodeBase64url(id), null]
  return encodeBase64url(Buffer.from(JSON.stringify(place)))
}

/** The row key that a cursor stands for; undefined where it is not a cursor. */
export function readRowCursor(cursor: string): Uint8Array | undefined {
  const [height, index, isItem, id] = listOf(cursor) ?? []
  const parsed = typeof id === 'string' ? parseId(id) : undefined
  if (parsed === undefined || !(typeof isItem === 'boolean' || isItem === 0 || isItem === 1)) return undefined
  if (!isCount(index ?? 0, indexMax)) return undefined
  const isPending = height === null || height === undefined
  if (!isPending && !isCount(height, pendingHeight - 1)) return undefined
  return rowKey(isPending ? undefined : height, Number(index ?? 0), Boolean(isItem), idBytes(parsed))
}

/** The cursor of a block: `[height]`. */
export function blockCursor(height: number): string {
  return encodeBase64url(Buffer.from(JSON.stringify([height])))
}

/** The height that a cursor stands for; undefined where it is not a cursor. */
export function readBlockCursor(cursor: string): number | undefined {
  const [height] = listOf(cursor) ?? []
  return isCount(height, pendingHeight - 1) ? height : undefined
}
