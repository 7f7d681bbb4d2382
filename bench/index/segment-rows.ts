import { idBytes } from '../../src/format/id.js'
import type { SegmentRow } from '../../src/index/segment-row.js'
import type { ChainBlock } from './chain.js'

/** When all rows of a bench were first seen. */
export const seenSeconds = 1_700_000_000

/** The rows of a block of the made-up chain, as segments take them, and the public keys behind their owners. */
export function* segmentRows({
  block,
  transactions,
  bundles,
}: ChainBlock): Generator<{ row: SegmentRow; key: Uint8Array }> {
  const indexes = new Map<string, number>()
  for (const { id, index, size, ownerAddress, owner, target, anchor, tags, ...rest } of transactions) {
    indexes.set(id, index)
    const { format, quantity, reward, dataRoot, weaveEnd } = rest
    yield {
      key: owner,
      row: {
        height: block.height,
        index,
        isItem: false,
        id: idBytes(id),
        seenSeconds,
        size,
        owner: ownerAddress,
        recipient: target,
        anchor,
        tags,
        signatureType: undefined,
        signature: undefined,
        place: undefined,
        transfer: { format, quantity, reward, dataRoot, weaveEnd },
        isUnjudged: false,
      },
    }
  }
  for (const { rootId, items } of bundles) {
    const index = indexes.get(rootId) ?? 0
    for (const { id, size, ownerAddress, owner, target, anchor, tags, signatureType, ...place } of items) {
      const { parentId, rootItemOffset, parentItemOffset, headerSize } = place
      yield {
        key: owner,
        row: {
          height: block.height,
          index,
          isItem: true,
          id: idBytes(id),
          seenSeconds,
          size,
          owner: ownerAddress,
          recipient: target,
          anchor,
          tags,
          signatureType,
          signature: undefined,
          place: { parent: idBytes(parentId), rootItemOffset, parentItemOffset, headerSize },
          transfer: undefined,
          isUnjudged: false,
        },
      }
    }
  }
}
