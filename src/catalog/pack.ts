import { idBytes } from '../format/id.js'
import { amountBytes } from './amount.js'
import type { ItemInput, RowInput, TransactionInput } from './index-protocol.js'
import { type RowTransfer, readTransfer } from './row.js'
import { VarReader, VarWriter } from './varbytes.js'

/**
 * Rows on their way to the keeper: all rows of a message in one buffer, which moves between threads at the
 * cost of one. Never stored, so it has no version: both ends are the same program.
 */
const none = new Uint8Array(0)

function writeRow(out: VarWriter, row: RowInput): void {
  out.raw(idBytes(row.id))
  out.uint(row.size)
  out.block(row.owner)
  out.block(row.ownerAddress)
  out.block(row.target)
  out.block(row.anchor)
  out.uint(row.tags.length)
  for (const tag of row.tags) {
    out.block(tag.name)
    out.block(tag.value)
  }
  out.block(row.signature ?? none)
  out.uint(row.signatureType === undefined ? 0 : row.signatureType + 1)
}

/**
 * A row as the keeper reads it out of a message: bytes are views of the message; words are texts of one
 * character per byte, which are cheap to look up. That is what lets one thread index tens of thousands of
 * rows a second.
 */
export interface PackedRow {
  readonly id: Buffer
  /** The first 6 bytes of the id: the order of ranks is the order of ids, but for ties. */
  readonly rank: number
  readonly size: number
  readonly owner: Buffer
  readonly ownerAddress: string
  /** '' where there is none. */
  readonly target: string
  readonly anchor: Buffer
  /** Name and value of each tag, each behind its length: `tagTexts` takes them apart. */
  readonly tags: readonly string[]
  readonly signature: Buffer | undefined
  readonly signatureType: number | undefined
  /** Of items. */
  readonly place: PackedPlace | undefined
  /** Of transactions. */
  readonly transfer: RowTransfer | undefined
  /** Position in the block, of transactions. */
  readonly index: number
}

export interface PackedPlace {
  readonly parentId: Buffer
  readonly rootItemOffset: number
  readonly parentItemOffset: number
  readonly headerSize: number
}

/** Name and value of a tag in a `PackedRow`, one character per byte. */
export function tagTexts(text: string): [name: string, value: string] {
  const read = (at: number): { start: number; end: number } => {
    let size = 0
    let scale = 1
    for (let byte = 0x80, next = at; ; next += 1) {
      byte = text.charCodeAt(next)
      size += (byte & 0x7f) * scale
      scale *= 0x80
      if (byte < 0x80) return { start: next + 1, end: next + 1 + size }
    }
  }
  const name = read(0)
  const value = read(name.end)
  return [text.slice(name.start, name.end), text.slice(value.start, value.end)]
}

function readRow(read: VarReader, ofItem: boolean): PackedRow {
  const id = read.raw(32)
  const size = read.uint()
  const owner = read.block()
  const ownerAddress = read.text()
  const target = read.text()
  const anchor = read.block()
  const tags = new Array<string>(read.uint())
  for (let at = 0; at < tags.length; at += 1) tags[at] = read.blockTexts(2)
  const signature = read.block()
  const type = read.uint()
  return {
    id,
    rank: id.readUIntBE(0, 6),
    size,
    owner,
    ownerAddress,
    target,
    anchor,
    tags,
    signature: signature.length === 0 ? undefined : signature,
    signatureType: type === 0 ? undefined : type - 1,
    place: ofItem ? readPlace(read) : undefined,
    index: ofItem ? 0 : read.uint(),
    transfer: ofItem ? undefined : readTransfer(read),
  }
}

function readPlace(read: VarReader): PackedPlace {
  return {
    parentId: read.raw(32),
    rootItemOffset: read.uint(),
    parentItemOffset: read.uint(),
    headerSize: read.uint(),
  }
}

/** Packs transactions for a message. */
export function packTransactions(transactions: Iterable<TransactionInput>): Uint8Array {
  const out = new VarWriter()
  for (const transaction of transactions) {
    writeRow(out, transaction)
    out.uint(transaction.index)
    out.uint(transaction.format)
    out.block(amountBytes(transaction.quantity))
    out.block(amountBytes(transaction.reward))
    out.block(transaction.dataRoot)
    out.uint(transaction.weaveEnd)
  }
  return out.copy()
}

/**
 * The transactions in a message, one by one. Throws a RangeError on what `packTransactions` did not write.
 */
export function* unpackTransactions(packed: Uint8Array): Generator<PackedRow> {
  const read = new VarReader(packed)
  while (read.more) yield readRow(read, false)
}

/** Packs items of one root transaction for a message. */
export function packItems(items: Iterable<ItemInput>): Uint8Array {
  const out = new VarWriter()
  for (const item of items) {
    writeRow(out, item)
    out.raw(idBytes(item.parentId))
    out.uint(item.rootItemOffset)
    out.uint(item.parentItemOffset)
    out.uint(item.headerSize)
  }
  return out.copy()
}

/** The items in a message, one by one. Throws a RangeError on what `packItems` did not write. */
export function* unpackItems(packed: Uint8Array): Generator<PackedRow> {
  const read = new VarReader(packed)
  while (read.more) yield readRow(read, true)
}

/** Packs addresses (32 bytes) and the public keys behind them for a message. */
export function packOwners(
  owners: Iterable<{ readonly address: Uint8Array; readonly key: Uint8Array }>,
): Uint8Array {
  const out = new VarWriter()
  for (const { address, key } of owners) {
    out.block(address)
    out.block(key)
  }
  return out.copy()
}

/** The owners in a message, one by one; an address is a text of one character per byte. */
export function* unpackOwners(packed: Uint8Array): Generator<{ address: string; key: Buffer }> {
  const read = new VarReader(packed)
  while (read.more) yield { address: read.text(), key: read.block() }
}
