import { bundleCountSize, readBundleCount } from '../../format/bundle.js'
import { type ItemHeader, itemHeaderSizeMax, parseItemHeader } from '../../format/item.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { type RunningDigest, runningSha256, sha256 } from '../../proof/digest.js'
import { ItemVerifier } from '../../proof/item-verifier.js'
import { isListed } from '../../proof/owner-address.js'
import { isBundle } from '../../source/roots/learned.js'
import type { RecordDigest } from '../../store/segments/segment-record.js'

/** What clients and other services accept: 128 tags in 4096 bytes. */
const tagLimits = { tagsMax: 128, tagBytesMax: 4096 }
const nameMax = 1024
const valueMax = 3072
const headerMax = itemHeaderSizeMax(tagLimits)
const none = new Uint8Array(0)

/** What is known of an item when its last byte came. */
export interface ReadItem {
  readonly header: ItemHeader
  /** Bytes of header and payload. */
  readonly sizeBytes: number
  /** What the owner must have signed, 48 bytes. */
  readonly message: Uint8Array
  /** SHA-256 of the payload, 32 bytes. */
  readonly digest: Uint8Array
  /** Digest of header and payload, for the log. */
  readonly logDigest: RecordDigest
  /** SHA-256 of header and payload, base64; only where it was requested. */
  readonly wholeDigest?: string
  /** How many items the header of a bundle names, where so many fit into it; else 0. */
  readonly itemsInside: number
}

/** Reads one data item that arrives in pieces, and hashes its payload on the way. Holds the header alone. */
export class ItemReader {
  #header: ItemHeader | undefined
  /** The beginning of a header that is not whole yet; then the whole header. */
  #begun: Uint8Array = none
  #verifier: ItemVerifier | undefined
  readonly #digest = runningSha256()
  readonly #whole: RunningDigest | undefined
  /** The first bytes of a bundle, which state how many items it has. */
  #count: Uint8Array = none
  #isBlocked = false
  /** Bytes so far. */
  sizeBytes = 0

  /** `isWhole`: makes `wholeDigest`, too. `blockedOwners`: their addresses (`isListed`). */
  constructor(
    isWhole: boolean,
    private readonly blockedOwners: ReadonlySet<string>,
  ) {
    this.#whole = isWhole ? runningSha256() : undefined
  }

  /** It is of a blocked owner. What lies in a bundle is looked at when all of it is here (`BundleScan`). */
  get isBlocked(): boolean {
    return this.#isBlocked
  }

  /** Undefined until the header is whole. */
  get header(): ItemHeader | undefined {
    return this.#header
  }

  /** Takes the next bytes. Refusal (malformed): they are no item; its words name the byte. */
  push(bytes: Uint8Array): Refusal | undefined {
    this.sizeBytes += bytes.length
    this.#whole?.update(bytes)
    if (this.#verifier !== undefined) {
      this.#payload(bytes)
      return undefined
    }
    // No more is put aside than a header can have; what was too much comes again as payload below.
    const before = this.#begun.length
    const taken = bytes.subarray(0, headerMax - before)
    const seen = before === 0 ? taken : Buffer.concat([this.#begun, taken])
    const header = parseItemHeader(seen, tagLimits)
    if (header === 'more') {
      this.#begun = before === 0 ? Buffer.from(seen) : seen
      return undefined
    }
    if (isRefusal(header)) return header
    const long = header.tags.findIndex(({ name, value }) => name.length > nameMax || value.length > valueMax)
    if (long >= 0) {
      const why = `data item: tag ${long} is longer than ${nameMax} bytes of name and ${valueMax} of value`
      return refuse('malformed', 'client', `${why} (byte ${header.headerSize - header.rawTags.length})`)
    }
    this.#header = header
    this.#isBlocked = isListed(this.blockedOwners, header.signatureType, header.owner)
    this.#verifier = new ItemVerifier(header)
    this.#begun = Buffer.from(seen.subarray(0, header.headerSize))
    this.#payload(bytes.subarray(header.headerSize - before))
    return undefined
  }

  #payload(bytes: Uint8Array): void {
    this.#verifier?.update(bytes)
    this.#digest.update(bytes)
    if (this.#count.length < bundleCountSize)
      this.#count = Buffer.concat([this.#count, bytes.subarray(0, bundleCountSize - this.#count.length)])
  }

  #itemsInside({ headerSize, tags }: ItemHeader): number {
    if (this.#count.length < bundleCountSize || !isBundle(tags)) return 0
    const limits = { itemsMax: Number.MAX_SAFE_INTEGER, sizeBytes: this.sizeBytes - headerSize }
    const count = readBundleCount(this.#count, limits)
    return isRefusal(count) ? 0 : count
  }

  /** After the last byte, once. Refusal (malformed): the item ended in its header. */
  finish(): ReadItem | Refusal {
    if (this.#header === undefined || this.#verifier === undefined) {
      return refuse('malformed', 'client', `data item: it ends in its header (byte ${this.sizeBytes})`)
    }
    const message = this.#verifier.message()
    const digest = this.#digest.digest()
    return {
      header: this.#header,
      sizeBytes: this.sizeBytes,
      message,
      digest,
      itemsInside: this.#itemsInside(this.#header),
      logDigest: { frontBytes: this.#header.headerSize, digest: sha256(this.#begun, digest) },
      ...(this.#whole === undefined
        ? {}
        : { wholeDigest: Buffer.from(this.#whole.digest()).toString('base64') }),
    }
  }
}
