import { createHash, type Hash } from 'node:crypto'
import { type ItemHeader, itemHeaderSizeMax, parseItemHeader } from '../format/item.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { ItemVerifier } from '../proof/item.js'

/** What clients and other services accept: 128 tags in 4096 bytes. */
const tagLimits = { tagsMax: 128, tagBytesMax: 4096 }
const nameMax = 1024
const valueMax = 3072
const headerMax = itemHeaderSizeMax(tagLimits)

/** What is known of an item when its last byte came. */
export interface ReadItem {
  readonly header: ItemHeader
  /** Of header and payload. */
  readonly sizeBytes: number
  /** What the owner must have signed, 48 bytes. */
  readonly message: Uint8Array
  /** SHA-256 of the payload, 32 bytes. */
  readonly digest: Uint8Array
  /** SHA-256 of header and payload. */
  readonly wholeDigest: Uint8Array
}

/** Reads one data item that arrives in pieces, and hashes its payload on the way. Holds the header alone. */
export class ItemReader {
  #header: ItemHeader | undefined
  #begun: Buffer = Buffer.alloc(0)
  #verifier: ItemVerifier | undefined
  readonly #digest: Hash = createHash('sha256')
  readonly #whole: Hash = createHash('sha256')
  /** Bytes so far. */
  sizeBytes = 0

  /** Undefined until the header is whole. */
  get header(): ItemHeader | undefined {
    return this.#header
  }

  /** Takes the next bytes. Refusal (malformed): they are no item; its words name the byte. */
  push(bytes: Uint8Array): Refusal | undefined {
    this.sizeBytes += bytes.length
    this.#whole.update(bytes)
    if (this.#verifier !== undefined) {
      this.#payload(bytes)
      return undefined
    }
    // No more is put aside than a header can have; what was too much comes again as payload below.
    const before = this.#begun.length
    const taken = bytes.subarray(0, headerMax - before)
    this.#begun = Buffer.concat([this.#begun, taken])
    const header = parseItemHeader(this.#begun, tagLimits)
    if (header === 'more') return undefined
    if (isRefusal(header)) return header
    const long = header.tags.findIndex(({ name, value }) => name.length > nameMax || value.length > valueMax)
    if (long >= 0) {
      const why = `data item: tag ${long} is longer than ${nameMax} bytes of name and ${valueMax} of value`
      return refuse('malformed', 'client', `${why} (byte ${header.headerSize - header.rawTags.length})`)
    }
    this.#header = header
    this.#verifier = new ItemVerifier(header)
    this.#begun = Buffer.alloc(0)
    this.#payload(bytes.subarray(header.headerSize - before))
    return undefined
  }

  #payload(bytes: Uint8Array): void {
    this.#verifier?.update(bytes)
    this.#digest.update(bytes)
  }

  /** After the last byte, once. Refusal (malformed): the item ended in its header. */
  finish(): ReadItem | Refusal {
    if (this.#header === undefined || this.#verifier === undefined) {
      return refuse('malformed', 'client', `data item: it ends in its header (byte ${this.sizeBytes})`)
    }
    const message = this.#verifier.message()
    const [digest, wholeDigest] = [this.#digest.digest(), this.#whole.digest()]
    return { header: this.#header, sizeBytes: this.sizeBytes, message, digest, wholeDigest }
  }
}
