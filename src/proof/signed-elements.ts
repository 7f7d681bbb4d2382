import { utf8 } from '../format/bytes.js'
import type { DeepHashElement } from './deep-hash-rule.js'

/** The fields of a format-2 transaction that its signature covers. Numbers are decimal texts. */
export interface SignedFields {
  /** 0 where the amounts were never redenominated. */
  readonly denomination: number
  /** No bytes where the key is recovered from the signature. */
  readonly owner: Uint8Array
  readonly target: Uint8Array
  readonly quantity: string
  readonly reward: string
  readonly lastTx: Uint8Array
  readonly tags: readonly (readonly [name: Uint8Array, value: Uint8Array])[]
  readonly dataSize: string
  readonly dataRoot: Uint8Array
}

/**
 * The elements whose deep hash the owner of a format-2 transaction signs, in this order. The data root stands in the place of
 * the data. An owner that is recovered from the signature is left out. A redenominated amount has its denomination in front.
 */
export function signedElements(fields: SignedFields): readonly DeepHashElement[] {
  const { denomination, owner, target, quantity, reward, lastTx, tags, dataSize, dataRoot } = fields
  return [
    ...(denomination === 0 ? [] : [utf8(denomination.toString())]),
    utf8('2'),
    ...(owner.length === 0 ? [] : [owner]),
    target,
    utf8(quantity),
    utf8(reward),
    lastTx,
    tags,
    utf8(dataSize),
    dataRoot,
  ]
}
