import { unpackBlockHeader } from '../catalog/block-header.js'
import type { BlockRecord } from '../catalog/block-record.js'
import type { ChainIndex } from '../catalog/index-reader.js'
import type { Row as IndexRow } from '../catalog/row.js'
import { signatureTypes } from '../format/item.js'
import { isNamed } from '../format/media-type.js'
import type { ParquetRow, Value } from './l1-layout.js'

const ownerBytesMax = 64
/** Bytes of the signature type, which precedes the signature of an item. */
const typeBytes = 2

/** A block as a row of the table `blocks`. */
export function blockRow(block: BlockRecord): ParquetRow {
  const { nonce = null, hash = null, blockSize } = block.header ? unpackBlockHeader(block.header) : {}
  return [
    Buffer.from(block.id, 'base64url'),
    BigInt(block.height),
    Buffer.from(block.previous, 'base64url'),
    nonce,
    hash,
    BigInt(block.timestamp),
    block.transactionCount,
    blockSize === undefined ? null : BigInt(blockSize),
  ]
}

/** Rows of the index as rows of the tables `transactions` and `tags`. */
export class ExportRows {
  /** The transaction that was seen last: the items behind it lie in it. */
  #root: IndexRow | undefined

  constructor(private readonly index: ChainIndex) {}

  /** Rows come in chain order, each with its height. */
  transaction(row: IndexRow, height: number): ParquetRow {
    const { transfer } = row
    if (!row.isItem) this.#root = row
    // In format 1 it is computed and in no header, and tables of other gateways leave it out.
    const isStated = transfer !== undefined && transfer.format === 2 && transfer.dataRoot.length > 0
    const dataRoot = isStated ? transfer.dataRoot : null
    return [
      Buffer.from(row.id),
      BigInt(row.seenSeconds),
      row.index,
      row.isItem,
      row.recipient.length === 0 ? null : row.recipient,
      transfer?.quantity ?? 0n,
      transfer?.reward ?? 0n,
      row.anchor,
      BigInt(row.size),
      this.#contentType(row),
      transfer?.format ?? null,
      BigInt(height),
      row.owner,
      dataRoot,
      ...this.#place(row),
    ]
  }

  *tags(row: IndexRow, height: number): Generator<ParquetRow> {
    const id = Buffer.from(row.id)
    const [at, seen] = [BigInt(height), BigInt(row.seenSeconds)]
    for (const [index, tag] of row.tags.entries()) {
      yield [at, id, index, seen, tag.name, tag.value, row.isItem]
    }
  }

  /** From `parent` on. */
  #place(row: IndexRow): Value[] {
    const { place, transfer } = row
    if (place === undefined) {
      const end = transfer?.weaveEnd ?? 0
      return [null, end === 0 ? null : BigInt(end), ...Array<null>(10).fill(null)]
    }
    const { headerSize, parentItemOffset: start, rootItemOffset } = place
    const kind = row.signatureType === undefined ? undefined : signatureTypes.get(row.signatureType)
    const signatureAt = kind === undefined ? null : BigInt(start + typeBytes)
    const ownerAt = kind === undefined ? null : BigInt(start + typeBytes + kind.signatureSize)
    return [
      place.parent,
      BigInt(start),
      BigInt(headerSize + row.size),
      BigInt(start + headerSize),
      ownerAt,
      kind?.ownerSize ?? null,
      this.#owner(row),
      signatureAt,
      kind?.signatureSize ?? null,
      row.signatureType ?? null,
      this.#rootId(row),
      BigInt(rootItemOffset - start),
    ]
  }

  #owner(row: IndexRow): Uint8Array | null {
    const key = this.index.ownerKey(row.owner)
    return key === undefined || key.length > ownerBytesMax ? null : key
  }

  #rootId(row: IndexRow): Uint8Array | null {
    const last = this.#root
    const root = last?.height === row.height && last?.index === row.index ? last : this.index.rootOf(row)
    return root === undefined ? null : Buffer.from(root.id)
  }

  /** Value of the first tag of this name, in whatever letters it is written. */
  #contentType(row: IndexRow): string | null {
    const tag = row.tags.find((one) => isNamed(one.name, 'content-type'))
    return tag === undefined ? null : tag.value.toString('utf8')
  }
}
