import type { Clock, Timer } from '../actor/clock.js'
import type { Address } from '../actor/mailbox-address.js'
import type { Attributes, ItemPlace } from '../catalog/attributes.js'
import type { Catalog, CatalogReply, CatalogRequest } from '../catalog/catalog-messages.js'
import { parseItemHeader } from '../format/item.js'
import { bareType } from '../format/media-type.js'
import { isRefusal } from '../format/refusal.js'
import { equalBytes, sha256 } from '../proof/digest.js'
import { ItemVerifier } from '../proof/item-verifier.js'
import { attributesInBundle, withinBundle } from '../source/roots/learned.js'
import type { StoredContent } from '../store/stored-content.js'
import type { Entries } from './entries.js'
import type { Entry } from './entry.js'
import type { Transfers } from './gateway-parts.js'
import { ItemWindow } from './item-window.js'
import { manifestType } from './open-manifests.js'

/** Items up to this size are judged on the thread that serves them: some hundred microseconds, once. */
const judgedHereMaxBytes = 64 * 1024

const none = new Uint8Array(0)

/** Signatures whose check is a call of the system's library. The others take a millisecond, and are checked by the pool. */
const promptTypes: ReadonlySet<number> = new Set([1, 2, 4, 5])

/** Digests are reported in groups, this long after the first of a group. Digests beyond its limit are computed again later. */
const flushMs = 250
const learnedMax = 512

/** An item out of its bundle; unchecked: `check` it first. */
export type FoundWindow = { readonly entry: Entry; readonly content: ItemWindow } | 'unchecked'

export interface WindowParts {
  readonly entries: Entries
  /** What was judged when bundles were opened. */
  readonly catalog: Pick<Catalog, 'judged'>
  readonly transfers: Pick<Transfers, 'judgeItem'>
  /** Gets the digests of items. Absent: each thread computes them. */
  readonly keeper: Pick<Address<CatalogRequest, CatalogReply>, 'tell'> | undefined
  readonly clock: Clock
  /** Bundles up to this size are hashed while somebody waits. */
  readonly checkWaitBytes: number
  /** The content of an entry that has a path, open; undefined where it cannot be read. */
  readonly open: (entry: Entry) => StoredContent | undefined
  readonly isSound: (entry: Entry, content: StoredContent) => boolean
  /** Has the content of an entry compared with its digest. */
  readonly check: (entry: Entry) => Promise<boolean>
}

/**
 * Items in stored bundles, served from the bundle's file without a copy.
 *
 * A window is served only under three conditions. Its bundle was compared with its digest (or the item was, see `#alone`). The
 * bundle is verified or trusted. The bytes have the digest on record for the id, or the item's owner signed them. So the digest
 * is known before the first byte is sent, as for content in its own file. The result of the check is kept by place and digest of
 * the bundle, and is void when either changes.
 */
export class ItemWindows {
  #learned: Attributes[] = []
  #timer: Timer | undefined

  constructor(private readonly parts: WindowParts) {}

  /** The payload of an entry that has none of its own in the store; undefined where it is in no bundle here. */
  open(entry: Entry): FoundWindow | undefined {
    const { place } = entry.attributes
    if (place === undefined || bareType(entry.contentType) === manifestType) return undefined
    const root = this.#rootOf(place)
    if (root === undefined || isFalse(entry, place, root)) return undefined
    const whole = this.parts.open(root)
    if (whole === undefined) return undefined
    const found = this.#open(entry, place, root, whole)
    if (found === undefined || found === 'unchecked') whole.close()
    return found
  }

  #open(entry: Entry, place: ItemPlace, root: Entry, whole: StoredContent): FoundWindow | undefined {
    const { size } = entry.attributes
    const { rootItemOffset, itemSize, headerSize } = place
    const start = rootItemOffset + headerSize
    if (headerSize + size !== itemSize || start + size > whole.sizeBytes) return undefined
    if (!this.parts.isSound(root, whole)) return this.#alone(entry, place, root, whole)
    if (entry.judged?.holds === true && isOf(entry, place, root) && !isProvenSince(entry, root))
      return { entry, content: new ItemWindow(root, whole, start, size) }
    const known = this.#judgedBefore(entry, place, root)
    if (known !== undefined) {
      const now = this.parts.entries.replace(entry, known)
      now.judged = { place, rootDigest: digestOf(root), holds: true }
      return { entry: now, content: new ItemWindow(root, whole, start, size) }
    }
    if (itemSize > judgedHereMaxBytes) return 'unchecked'
    const bytes = bytesOf(whole, rootItemOffset, rootItemOffset + itemSize)
    if (bytes === undefined) return 'unchecked'
    const judged = judge(entry.attributes, root.attributes, place, bytes)
    if (judged === 'later') return 'unchecked'
    const now = judged === 'false' || judged === entry.attributes ? entry : this.#learn(entry, judged)
    now.judged = { place, rootDigest: digestOf(root), holds: judged !== 'false' }
    if (judged === 'false' || bareType(now.contentType) === manifestType) return undefined
    return { entry: now, content: new ItemWindow(root, whole, start, size) }
  }

  /**
   * An item of a bundle that was not compared with its digest since the start. A large bundle takes too long for that, so the
   * bytes of the item are compared with its own digest at each request until then.
   */
  #alone(entry: Entry, place: ItemPlace, root: Entry, whole: StoredContent): FoundWindow {
    if (whole.sizeBytes <= this.parts.checkWaitBytes || place.itemSize > judgedHereMaxBytes)
      return 'unchecked'
    const { attributes } = entry
    const known = attributes.digest === undefined ? this.#judgedBefore(entry, place, root) : attributes
    if (known?.digest === undefined) return 'unchecked'
    const start = place.rootItemOffset + place.headerSize
    const bytes = known.size === 0 ? none : bytesOf(whole, start, start + known.size)
    if (bytes === undefined || !equalBytes(sha256(bytes), known.digest)) return 'unchecked'
    void this.parts.check(root)
    const now = known === attributes ? entry : this.parts.entries.replace(entry, known)
    return { entry: now, content: new ItemWindow(root, whole, start, known.size) }
  }

  /** What is known of an item that was judged here when its bundle was opened. */
  #judgedBefore({ attributes }: Entry, place: ItemPlace, root: Entry): Attributes | undefined {
    // Without its header its signer is unknown, and so are the headers of the answer.
    if (attributes.header === undefined) return undefined
    const digest = this.parts.catalog.judged(digestOf(root), attributes.id, place)
    if (digest === undefined) return undefined
    // Another digest is on record: the bytes decide.
    if (attributes.digest !== undefined && !equalBytes(attributes.digest, digest)) return undefined
    return withinBundle(attributes, digest, root.attributes)
  }

  /** The bundle that the item lies in, where it is in the store and somebody vouches for it. */
  #rootOf({ rootId }: ItemPlace): Entry | undefined {
    const root = this.parts.entries.get(rootId)
    if (root?.blobPath === undefined) return undefined
    const { verified, trusted, digest } = root.attributes
    return digest !== undefined && (verified || trusted) ? root : undefined
  }

  /**
   * What `unchecked` waits for: the bundle is compared with its digest, and the bytes of the item are brought into memory. An
   * item that is not judged on this thread is judged on another one. Never rejects.
   */
  async check(entry: Entry): Promise<void> {
    const { place } = entry.attributes
    const root = place === undefined ? undefined : this.#rootOf(place)
    const whole = root === undefined ? undefined : this.parts.open(root)
    if (place === undefined || root === undefined || whole === undefined) return
    try {
      const start = place.rootItemOffset
      const isChecked = await this.#isChecked(root, whole)
      // Its bytes alone may be compared, once they are in memory.
      if (!isChecked && place.itemSize <= judgedHereMaxBytes)
        await isHere(whole, start, start + place.itemSize)
      if (!isChecked || place.itemSize > this.parts.checkWaitBytes) return
      if (place.itemSize > judgedHereMaxBytes || !(await isPrompt(whole, start, start + place.itemSize)))
        await this.#judgeElsewhere(entry, root)
    } finally {
      whole.close()
    }
  }

  /** False: the bundle is damaged, or so large that nobody waits until it was compared. */
  async #isChecked(root: Entry, whole: StoredContent): Promise<boolean> {
    if (this.parts.isSound(root, whole)) return true
    const checked = this.parts.check(root)
    return whole.sizeBytes <= this.parts.checkWaitBytes && (await checked)
  }

  async #judgeElsewhere(entry: Entry, root: Entry): Promise<void> {
    const { id } = entry.attributes
    const holds = await this.parts.transfers.judgeItem?.(id)
    if (holds === undefined || isRefusal(holds)) return
    // The catalog may know more of the item by now.
    const now = this.parts.entries.get(id)
    const place = now?.attributes.place
    // Where it has another place by now, nobody knows which of the two was judged.
    if (now !== undefined && place !== undefined && isSamePlace(place, entry.attributes.place))
      now.judged = { place, rootDigest: digestOf(root), holds }
  }

  #learn(entry: Entry, attributes: Attributes): Entry {
    if (this.#learned.length < learnedMax) this.#learned.push(attributes)
    this.#timer ??= this.parts.clock.after(flushMs, () => this.#flush())
    return this.parts.entries.replace(entry, attributes)
  }

  #flush(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    const attributes = this.#learned
    this.#learned = []
    // The mailbox is full: the digests are computed again at the next request.
    if (attributes.length > 0) this.parts.keeper?.tell({ kind: 'learn', attributes })
  }

  /** Reports what was learned last. */
  close(): void {
    this.#flush()
  }
}

function digestOf({ attributes: { digest } }: Entry): Uint8Array {
  if (digest === undefined) throw new Error('a bundle without a digest')
  return digest
}

/** Whether the last judgement of an entry was about these bytes: this place in this bundle. */
function isOf({ judged }: Entry, place: ItemPlace, root: Entry): boolean {
  return (
    judged !== undefined && isSamePlace(judged.place, place) && equalBytes(judged.rootDigest, digestOf(root))
  )
}

function isSamePlace(one: ItemPlace, other: ItemPlace | undefined): boolean {
  return (
    one.rootItemOffset === other?.rootItemOffset &&
    one.headerSize === other.headerSize &&
    one.itemSize === other.itemSize
  )
}

/** Whether the bundle was proven after the item was judged in it: judged once more, the item is as verified as the bundle. */
function isProvenSince({ attributes }: Entry, root: Entry): boolean {
  return root.attributes.verified && !attributes.verified
}

function isFalse(entry: Entry, place: ItemPlace, root: Entry): boolean {
  return entry.judged?.holds === false && isOf(entry, place, root)
}

/** Bytes of content in one piece; undefined where they are not in memory. Valid until the next reading of any content. */
function bytesOf(content: StoredContent, start: number, end: number): Uint8Array | undefined {
  const first = content.read(start, end)
  if (first === undefined || first.length === end - start) return first
  const bytes = Buffer.allocUnsafe(end - start)
  bytes.set(first)
  for (let at = start + first.length; at < end; ) {
    const piece = content.read(at, end)
    if (piece === undefined) return undefined
    bytes.set(piece, at - start)
    at += piece.length
  }
  return bytes
}

/** Brings the bytes of an item into memory. False: they are not to be had. */
async function isHere(whole: StoredContent, start: number, end: number): Promise<boolean> {
  // It may lie in two of the parts that files are brought in.
  return end <= whole.sizeBytes && (await whole.ready(start, end)) && (await whole.ready(end - 1, end))
}

/** The same. False also where its signature is not checked on this thread. */
async function isPrompt(whole: StoredContent, start: number, end: number): Promise<boolean> {
  if (!(await isHere(whole, start, end))) return false
  const [low = 0, high = 0] = bytesOf(whole, start, start + 2) ?? []
  return promptTypes.has(low + 256 * high)
}

/**
 * What is known of an item whose bytes are at hand, out of a bundle that is sound. `false`: they are not the item, or not what
 * is known of it. `later`: only another thread can tell.
 */
function judge(
  known: Attributes,
  root: Attributes,
  { headerSize }: ItemPlace,
  bytes: Uint8Array,
): Attributes | 'false' | 'later' {
  const payload = bytes.subarray(headerSize)
  // Kept for long: it must not keep all of the memory that small arrays are cut from.
  const digest = new Uint8Array(sha256(payload))
  if (known.digest !== undefined) {
    if (!equalBytes(known.digest, digest)) return 'false'
    if (known.verified || !root.verified) return known
  }
  const header = parseItemHeader(bytes)
  if (header === 'more' || isRefusal(header)) return 'false'
  if (header.id !== known.id || header.headerSize !== headerSize) return 'false'
  if (!promptTypes.has(header.signatureType)) return 'later'
  const verifier = new ItemVerifier(header)
  verifier.update(payload)
  if (verifier.finish() !== true) return 'false'
  return attributesInBundle(known, header, digest, root)
}
