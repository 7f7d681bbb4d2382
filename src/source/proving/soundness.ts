import type { Log } from '../../actor/log.js'
import type { Address } from '../../actor/mailbox-address.js'
import type { CatalogReply, CatalogRequest } from '../../catalog/catalog-messages.js'
import type { LmdbCatalog } from '../../catalog/reader.js'
import type { Id } from '../../format/id.js'
import { latin1Text } from '../../format/latin1-text.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { type BlobStore, blobPath, type FileIdentity } from '../../store/blobs.js'
import { stampOf } from '../../store/file-stamp.js'
import type { SmallBlobs } from '../../store/segments/small-blobs.js'
import { SoundFiles } from '../../store/sound-files.js'
import type { BlobCache } from '../keeping/blob-cache.js'
import { insist } from '../keeping/commit-batch.js'
import type { BlobProver } from './prover.js'

/** Whether blobs on disk are what their names say. Each state of a file is hashed once. */
export class Soundness {
  readonly #underway = new Map<string, Promise<boolean | Refusal>>()

  constructor(
    private readonly store: BlobStore,
    private readonly prover: BlobProver,
    private readonly blobCache: BlobCache,
    private readonly catalog: LmdbCatalog,
    private readonly keeper: Address<CatalogRequest, CatalogReply>,
    private readonly log: Log,
    private readonly sound = new SoundFiles(),
    private readonly small?: SmallBlobs,
  ) {}

  /**
   * True: sound. False: missing or wrong, and by now dropped. The digest on record stays: it is what a new copy must match.
   * One that was never proven is forgotten with the bytes. Refusal: nobody can say now (the disk fails, no descriptor, too
   * many wait to be hashed), and nothing was dropped: only other bytes than the digest's are no blob. Never rejects.
   */
  check(id: Id, digest: Uint8Array): Promise<boolean | Refusal> {
    const name = latin1Text(digest)
    const running = this.#underway.get(name)
    if (running !== undefined) return running
    const check = this.#check(id, digest)
      .catch((error: unknown) => {
        this.log.error({ err: error, id }, 'a blob could not be checked')
        return refuse('busy', 'self', 'the blob cannot be checked now')
      })
      .finally(() => this.#underway.delete(name))
    this.#underway.set(name, check)
    return check
  }

  /** The blob was hashed while it was written: its file is sound as it stands. */
  believe(digest: Uint8Array, identity: FileIdentity): void {
    this.#remember(digest, identity)
  }

  async #check(id: Id, digest: Uint8Array): Promise<boolean | Refusal> {
    if (this.small?.part(digest) !== undefined) return this.#checkSmall(id, digest)
    const before = await this.store.identify(digest)
    if (before === undefined) {
      await this.#drop(id, digest)
      return false
    }
    if (this.sound.has(digest, Number(before.sizeBytes), stampOf(before.inode, before.modifiedNs)))
      return true
    const found = await this.prover.digest({ path: blobPath(this.store.folder, digest) })
    if (isRefusal(found)) return found
    if (found !== undefined && Buffer.compare(found, digest) === 0) {
      this.#remember(digest, before)
      return true
    }
    // Evicted meanwhile, it is no damage.
    if (found !== undefined) this.#tell(id, digest)
    await this.#drop(id, digest)
    return false
  }

  /** It was hashed by the thread that asks, or is now: some hundred microseconds at most. */
  async #checkSmall(id: Id, digest: Uint8Array): Promise<boolean> {
    if (this.small?.isFalse(digest) === false) return true
    this.#tell(id, digest)
    await this.#drop(id, digest)
    return false
  }

  #tell(id: Id, digest: Uint8Array): void {
    this.log.error(
      { id, digest: Buffer.from(digest).toString('base64url') },
      'a blob was damaged on disk and is removed: it is fetched again when it is requested',
    )
  }

  async #drop(id: Id, digest: Uint8Array): Promise<void> {
    await this.blobCache.drop(digest)
    const known = this.catalog.attributes(id)
    if (known?.verified === false) await insist(this.keeper, { kind: 'distrust', id })
    // Nothing new is learned: the word moves the id's generation, so that no thread goes on with a prepared answer.
    else if (known !== undefined) await insist(this.keeper, { kind: 'learn', attributes: [known] })
  }

  #remember(digest: Uint8Array, { inode, sizeBytes, modifiedNs }: FileIdentity): void {
    this.sound.add(digest, Number(sizeBytes), stampOf(inode, modifiedNs))
  }
}
