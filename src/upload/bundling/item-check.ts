import { decodeBase64url } from '../../format/base64url.js'
import { parseItemHeader } from '../../format/item.js'
import { isRefusal } from '../../format/refusal.js'
import { ItemVerifier } from '../../proof/item-verifier.js'
import type { AcceptedItem } from '../records/uploads.js'
import { SplitCheck } from '../stored/split-check.js'

/** Whether bytes that come in pieces are those of an accepted item. */
export interface ItemCheck {
  /** Takes the next bytes, which may be overwritten afterwards. */
  update(bytes: Uint8Array): void
  /** After the last byte, once. */
  isRight(): boolean
}

/** By the digest that is known since the item was accepted; one of an older release has none, and is checked by its signature. */
export function checkOf(item: AcceptedItem): ItemCheck {
  const digest = item.logDigest === undefined ? undefined : decodeBase64url(item.logDigest)
  if (digest === undefined) return new SignatureCheck(item)
  return new SplitCheck({ frontBytes: item.headerSize, digest })
}

class SignatureCheck implements ItemCheck {
  readonly #header: Uint8Array[] = []
  #missing: number
  #verifier: ItemVerifier | undefined

  constructor(private readonly item: Pick<AcceptedItem, 'id' | 'headerSize'>) {
    this.#missing = item.headerSize
  }

  update(bytes: Uint8Array): void {
    const front = bytes.subarray(0, this.#missing)
    if (front.length > 0) this.#header.push(Buffer.from(front))
    this.#missing -= front.length
    if (this.#missing > 0) return
    if (this.#verifier === undefined) {
      const header = parseItemHeader(Buffer.concat(this.#header))
      // Nothing is verified where it is none, so that it does not count as right.
      if (header === 'more' || isRefusal(header) || header.id !== this.item.id) return
      this.#verifier = new ItemVerifier(header)
    }
    this.#verifier.update(bytes.subarray(front.length))
  }

  isRight(): boolean {
    return this.#verifier?.finish() === true
  }
}
