import { createHash } from 'node:crypto'
import type { ItemPlace } from '../../src/catalog/attributes.js'
import { bundleCountSize, bundleEntrySize, encodeBundle } from '../../src/format/bundle.js'
import { type Id, idOfBytes } from '../../src/format/id.js'
import { tagOf } from '../../src/format/tag.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { Dice } from '../kit/dice.js'
import { sizeOf, smallSizes } from './corpus.js'
import { truthBytes, truthFrom } from './truth.js'

/** A small signed item in a bundle: its payload is a window of the truth. */
export interface BundledItem {
  readonly id: Id
  readonly sizeBytes: number
  readonly truthStart: number
  /** Where it lies in a bundle that is a whole transaction. */
  place(rootId: Id): ItemPlace
}

export interface Bundle {
  readonly bytes: Uint8Array
  readonly digest: Uint8Array
  readonly items: readonly BundledItem[]
}

const tags = [tagOf('App-Name', 'bench'), tagOf('Content-Type', 'application/octet-stream')]
const signer = ed25519Signer(Buffer.alloc(32, 7))

/** Bundles with so many items in all, the same in each run; sizes as those of the other small contents. */
export function* bundlesOf(items: number, itemsEach: number): Generator<Bundle> {
  const dice = new Dice(items)
  for (let left = items; left > 0; left -= itemsEach) {
    const count = Math.min(left, itemsEach)
    const made = Array.from({ length: count }, () => itemOf(dice))
    const bytes = encodeBundle(made)
    let start = bundleCountSize + count * bundleEntrySize
    const placed = made.map(({ id, bytes: { length: itemSize }, sizeBytes, truthStart }): BundledItem => {
      const offset = start
      start += itemSize
      const place = (rootId: Id): ItemPlace => ({
        rootId,
        parentId: rootId,
        path: [rootId],
        rootItemOffset: offset,
        parentItemOffset: offset,
        itemSize,
        headerSize: itemSize - sizeBytes,
      })
      return { id, sizeBytes, truthStart, place }
    })
    yield { bytes, digest: createHash('sha256').update(bytes).digest(), items: placed }
  }
}

function itemOf(dice: Dice) {
  const sizeBytes = sizeOf(smallSizes, dice, 0)
  const truthStart = dice.below(truthBytes)
  const payload = Buffer.concat([...truthFrom(truthStart, sizeBytes)])
  const bytes = signItem(signer, { tags, anchor: dice.bytes(32) }, payload)
  // Two bytes of type, then the signature, whose hash is the id.
  const id = idOfBytes(createHash('sha256').update(bytes.subarray(2, 66)).digest())
  return { id, bytes, sizeBytes, truthStart }
}
