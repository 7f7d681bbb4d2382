import { idOfBytes } from '../format/id.js'
import { RowPacker } from './pack.js'
import { PackedRows } from './packed-rows.js'
import type { Row } from './row.js'

const noKey = new Uint8Array(0)

/** Rows of the index as a message of them, in their order: all of them transactions, or all of them items. */
export function packRows(rows: Iterable<Row>, areItems: boolean): PackedRows {
  const out = new RowPacker()
  for (const row of rows) {
    const { id, size, owner, recipient, anchor, tags, signature, signatureType, place, transfer } = row
    const common = {
      id: idOfBytes(id),
      size,
      owner: noKey,
      target: recipient,
      anchor,
      tags,
      ...(signature === undefined ? {} : { signature }),
      ...(signatureType === undefined ? {} : { signatureType }),
    }
    if (place !== undefined) {
      const { parent, ...offsets } = place
      out.item({ ...common, ...offsets, parentId: idOfBytes(parent) }, () => owner)
    } else if (transfer !== undefined) {
      out.transaction({ ...common, ...transfer, ownerAddress: owner, index: row.index })
    } else throw new Error('a row of the index is neither an item nor a transaction')
  }
  return new PackedRows(out.take('came'), areItems)
}
