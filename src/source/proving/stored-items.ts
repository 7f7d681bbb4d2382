import type { Log } from '../../actor/log.js'
import type { Address } from '../../actor/mailbox-address.js'
import type { Attributes, ItemPlace } from '../../catalog/attributes.js'
import type { CatalogReply, CatalogRequest } from '../../catalog/catalog-messages.js'
import type { LmdbCatalog } from '../../catalog/reader.js'
import type { Id } from '../../format/id.js'
import type { ItemHeader } from '../../format/item.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { equalBytes } from '../../proof/digest.js'
import type { BlobStore } from '../../store/blobs.js'
import { insist } from '../keeping/commit-batch.js'
import type { BlobRoots } from '../roots/blob-roots.js'
import { isFailure, readItemHeader } from '../roots/item-location.js'
import { attributesInBundle } from '../roots/learned.js'
import type { BlobProver } from './prover.js'
import type { Soundness } from './soundness.js'

export interface StoredItemsParts {
  readonly catalog: LmdbCatalog
  readonly store: BlobStore
  readonly roots: Pick<BlobRoots, 'open'>
  readonly prover: BlobProver
  readonly soundness: Pick<Soundness, 'check'>
  readonly keeper: Address<CatalogRequest, CatalogReply>
  readonly log: Log
}

/** An item in a bundle that somebody vouches for. */
interface Placed {
  readonly known: Attributes
  readonly place: ItemPlace
  readonly root: Attributes
  readonly rootDigest: Uint8Array
}

/**
 * Items in stored bundles that edge threads do not check themselves, because they are large or their signatures are slow to
 * check. The pool reads them from the bundle's file, and the catalog gets their digests. Nothing is copied.
 */
export class StoredItems {
  readonly #underway = new Map<Id, Promise<boolean | Refusal>>()

  constructor(private readonly parts: StoredItemsParts) {}

  /**
   * Whether the item is what lies at its place in a bundle here: it has the digest on record, or its owner signed it. Refusal:
   * nobody can say now. Never rejects.
   */
  judge(id: Id): Promise<boolean | Refusal> {
    const running = this.#underway.get(id)
    if (running !== undefined) return running
    const judging = this.#judge(id)
      .catch((error: unknown) => {
        this.parts.log.error({ err: error, id }, 'an item in a bundle could not be judged')
        return refuse('busy', 'self', 'the item cannot be checked now')
      })
      .finally(() => this.#underway.delete(id))
    this.#underway.set(id, judging)
    return judging
  }

  async #judge(id: Id): Promise<boolean | Refusal> {
    const placed = this.#placed(id)
    if (placed === undefined) return false
    const { known, place, root, rootDigest } = placed
    const isSound = await this.parts.soundness.check(root.id, rootDigest)
    if (isSound !== true) return isSound
    const header = await this.#headerOf(known, place)
    if (header === undefined || isRefusal(header)) return header ?? false
    const { path, offset = 0 } = this.parts.store.part(rootDigest)
    const start = offset + place.rootItemOffset + place.headerSize
    const part = { path, offset: start, sizeBytes: known.size }
    const digest = await this.parts.prover.digest(part)
    if (digest === undefined || isRefusal(digest)) return digest ?? false
    if (known.digest !== undefined) {
      if (!equalBytes(known.digest, digest)) return false
      if (known.verified || !root.verified) return true
    }
    const isSigned = await this.parts.prover.isPayload(part, header)
    if (isSigned !== true) return isSigned ?? false
    const attributes = attributesInBundle(known, header, digest, root)
    return insist(this.parts.keeper, { kind: 'learn', attributes: [attributes] })
  }

  #placed(id: Id): Placed | undefined {
    const { catalog } = this.parts
    const known = catalog.attributes(id)
    const place = known?.place
    const root = place === undefined ? undefined : catalog.attributes(place.rootId)
    const rootDigest = root?.digest
    if (known === undefined || place === undefined || root === undefined || rootDigest === undefined)
      return undefined
    const isHere = (root.verified || root.trusted) && catalog.blobSize(rootDigest) !== undefined
    return isHere && place.headerSize + known.size === place.itemSize
      ? { known, place, root, rootDigest }
      : undefined
  }

  /** Undefined: what lies there is not the item. */
  async #headerOf({ id }: Attributes, place: ItemPlace): Promise<ItemHeader | Refusal | undefined> {
    const root = await this.parts.roots.open(place.rootId)
    if (isRefusal(root)) return isFailure(root) ? root : undefined
    try {
      const { signal } = new AbortController()
      const header = await readItemHeader(root, id, place.rootItemOffset, place.itemSize, signal)
      if (isRefusal(header)) return isFailure(header) ? header : undefined
      return header.headerSize === place.headerSize ? header : undefined
    } finally {
      await root.close()
    }
  }
}
