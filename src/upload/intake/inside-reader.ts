import { createHash } from 'node:crypto'
import type { BundleEntry } from '../../format/bundle.js'
import { BundleReader } from '../../format/bundle-reader.js'
import type { ItemHeader } from '../../format/item.js'
import { ItemVerifier } from '../../proof/item-verifier.js'

const itemsMax = 20_000

/** An item of a bundle that was read. */
export interface InsideItem {
  readonly header: ItemHeader
  /** Where it begins in the bytes of the bundle, whose header is among them. */
  readonly start: number
  readonly sizeBytes: number
  /** What its owner must have signed. */
  readonly message: Uint8Array
  /** SHA-256 of its payload. */
  readonly digest: Uint8Array
}

/** Reads the items of an uploaded bundle from pieces of its payload, and hashes each. */
export class InsideReader {
  readonly #reader: BundleReader
  #verifier: ItemVerifier | undefined
  #digest = createHash('sha256')
  #entry: BundleEntry | undefined

  /** Takes two lengths of the item that is the bundle: the bytes in front of its payload, and all of its bytes. */
  constructor(
    private readonly headerSize: number,
    sizeBytes: number,
  ) {
    this.#reader = new BundleReader({ itemsMax, sizeBytes: sizeBytes - headerSize })
  }

  /** Takes the next bytes, and adds the items that end in them to `items`. Returns why nothing more can be read. */
  push(bytes: Uint8Array, items: InsideItem[]): string | undefined {
    for (const event of this.#reader.push(bytes)) {
      if (event.kind === 'broken') return event.refusal.message
      if (event.kind === 'header') {
        this.#entry = event.entry
        this.#verifier = new ItemVerifier(event.header)
        this.#digest = createHash('sha256')
      }
      if (event.kind === 'payload') {
        this.#verifier?.update(event.bytes)
        this.#digest.update(event.bytes)
      }
      if (event.kind === 'end') this.#end(items)
    }
    return undefined
  }

  #end(items: InsideItem[]): void {
    const [verifier, entry] = [this.#verifier, this.#entry]
    if (verifier === undefined || entry === undefined) return
    const { header } = verifier
    const { sizeBytes } = entry
    const start = this.headerSize + entry.offset
    items.push({ header, start, sizeBytes, message: verifier.message(), digest: this.#digest.digest() })
    this.#verifier = undefined
  }
}
