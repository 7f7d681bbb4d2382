import { amountBytes } from '../format/amount.js'
import { type Id, idBytes } from '../format/id.js'
import { latin1Text } from '../format/latin1-text.js'
import type { Tag } from '../format/tag.js'
import { VarReader, VarWriter } from '../format/varbytes.js'
import { orderOf } from '../store/sort-records.js'
import type { ItemInput, RowInput, TransactionInput } from './index-protocol.js'

/**
 * Rows on their way to the keeper: all rows of a message in one buffer, which moves between threads at the
 * cost of one. Never stored, so it has no version: both ends are the same program.
 *
 *     bytes of the words u32 | words | rows, in the order of their ids
 *
 * Owners, recipients, tags and bundles are words: each stands once in a message, and rows name it by its place (1-based, LEB128;
 * 0 is none). So whoever writes the index looks a word up once for a thousand rows. packed-rows.ts reads it.
 */
export const wordRole = { tag: 1, owner: 2, recipient: 3, bundle: 4 } as const
export type WordRole = (typeof wordRole)[keyof typeof wordRole]

const none = new Uint8Array(0)
const idWords = 8

/** Sorted by id, which is written fastest; or in the order in which they came, where they are in no block. */
export type RowOrder = 'ids' | 'came'

/** Packs rows one by one. */
export class RowPacker {
  readonly #words = new VarWriter()
  readonly #rows = new VarWriter()
  /** Places of words: of tags by name and value, of owners by their keys or, where those are not known, addresses. */
  readonly #tags = new Map<string, Map<string, number>>()
  readonly #keys = new Map<string, number>()
  readonly #addresses = new Map<string, number>()
  readonly #recipients = new Map<string, number>()
  readonly #bundles = new Map<Id, number>()
  #last = 0
  /** Where each row begins; the ids. */
  readonly #starts: number[] = []

  /** The place of an owner: its key (none where it is not known) and the address of it. */
  #owner(key: Uint8Array, addressOf: (key: Uint8Array) => Uint8Array): number {
    const address = key.length === 0 ? addressOf(key) : undefined
    const places = address === undefined ? this.#keys : this.#addresses
    const text = latin1Text(address ?? key)
    const known = places.get(text)
    if (known !== undefined) return known
    const place = this.#begin(wordRole.owner)
    places.set(text, place)
    this.#words.block(address ?? addressOf(key))
    this.#words.block(key)
    return place
  }

  #tag({ name, value }: Tag): number {
    const nameText = latin1Text(name)
    let values = this.#tags.get(nameText)
    if (values === undefined) {
      values = new Map()
      this.#tags.set(nameText, values)
    }
    const text = latin1Text(value)
    const known = values.get(text)
    if (known !== undefined) return known
    const place = this.#begin(wordRole.tag)
    values.set(text, place)
    this.#words.block(name)
    this.#words.block(value)
    return place
  }

  #recipient(address: Uint8Array): number {
    const text = latin1Text(address)
    const known = this.#recipients.get(text)
    if (known !== undefined) return known
    const place = this.#begin(wordRole.recipient)
    this.#recipients.set(text, place)
    this.#words.block(address)
    return place
  }

  #bundle(id: Id): number {
    const known = this.#bundles.get(id)
    if (known !== undefined) return known
    const place = this.#begin(wordRole.bundle)
    this.#bundles.set(id, place)
    this.#words.block(idBytes(id))
    return place
  }

  #begin(role: WordRole): number {
    this.#last += 1
    this.#words.u8(role)
    return this.#last
  }

  /** Packs an item; `addressOf` gives the address of an owner that is new to the message. */
  item(item: Omit<ItemInput, 'ownerAddress'>, addressOf: (key: Uint8Array) => Uint8Array): void {
    const out = this.#row(item, this.#owner(item.owner, addressOf))
    out.uint(this.#bundle(item.parentId))
    out.uint(item.rootItemOffset)
    out.uint(item.parentItemOffset)
    out.uint(item.headerSize)
  }

  transaction(transaction: TransactionInput): void {
    const { owner, ownerAddress } = transaction
    const out = this.#row(
      transaction,
      this.#owner(owner, () => ownerAddress),
    )
    out.uint(transaction.index)
    out.uint(transaction.format)
    out.block(amountBytes(transaction.quantity))
    out.block(amountBytes(transaction.reward))
    out.block(transaction.dataRoot)
    out.uint(transaction.weaveEnd)
  }

  /** What transactions and items have in common. */
  #row(row: Omit<RowInput, 'ownerAddress'>, owner: number): VarWriter {
    const out = this.#rows
    this.#starts.push(out.size)
    out.raw(idBytes(row.id))
    out.uint(row.size)
    out.uint(owner)
    out.uint(row.target.length === 0 ? 0 : this.#recipient(row.target))
    out.block(row.anchor)
    out.uint(row.tags.length)
    for (const tag of row.tags) out.uint(this.#tag(tag))
    out.block(row.signature ?? none)
    out.uint(row.signatureType === undefined ? 0 : row.signatureType + 1)
    return out
  }

  /** The message. Nothing may be packed after it. `order`: the rows' own, or that of their ids. */
  take(order: RowOrder = 'ids'): Uint8Array {
    const words = this.#words.written
    const rows = this.#rows.written
    const message = Buffer.allocUnsafeSlow(4 + words.length + rows.length)
    message.writeUInt32LE(words.length, 0)
    let at = 4 + words.copy(message, 4)
    this.#starts.push(rows.length)
    const count = this.#starts.length - 1
    for (const row of order === 'ids' ? this.#byId(rows) : new Uint32Array(count).keys()) {
      at += rows.copy(message, at, this.#starts[row] as number, this.#starts[row + 1] as number)
    }
    return message
  }

  /** Rows in the order of their ids, so that nothing that follows need be sorted. */
  #byId(rows: Buffer): Uint32Array {
    const count = this.#starts.length - 1
    const ids = new Uint32Array(count * idWords)
    for (let row = 0; row < count; row += 1) {
      const start = this.#starts[row] as number
      for (let word = 0; word < idWords; word += 1) {
        ids[row * idWords + word] = rows.readUInt32BE(start + word * 4)
      }
    }
    return orderOf(ids, idWords, count)
  }
}

/** Packs transactions for a message. */
export function packTransactions(transactions: Iterable<TransactionInput>, order?: RowOrder): Uint8Array {
  const out = new RowPacker()
  for (const transaction of transactions) out.transaction(transaction)
  return out.take(order)
}

/** Packs items of one root transaction for a message. */
export function packItems(items: Iterable<ItemInput>, order?: RowOrder): Uint8Array {
  const out = new RowPacker()
  for (const item of items) {
    out.item(item, () => item.ownerAddress)
  }
  return out.take(order)
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
