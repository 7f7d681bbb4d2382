import type { Cell } from '../actor/shared.js'
import type { Attributes } from '../catalog/attributes.js'
import type { Catalog } from '../catalog/catalog-messages.js'
import type { Id } from '../format/id.js'
import type { BlockList } from '../moderation/moderation-messages.js'
import { blocksCopy, blocksPlace } from '../source/blocked-places.js'
import type { Content } from '../store/content.js'
import type { Entry } from './entry.js'

/** The answer in place of blocked content. */
export interface Blocking {
  readonly status: 451 | 503
  readonly text: string
  readonly lines: string
}

/** What the block list is compared with. */
type Subject = Pick<Attributes, 'id' | 'place' | 'digest'>

/** Larger bodies are checked again while they are sent; smaller ones are copied whole into the server at once. */
const watchedMinBytes = 16 * 1024

/**
 * The block list of the gateway. Bundle and digest of an id are checked, not the id alone.
 *
 * What a block covers: the id itself; the same bytes under any id (by hash); an item that the index or an upload has inside of
 * what is blocked; and all bytes that are read out of blocked data. The last is about a copy and not about the item: strangers
 * can post copies of any item inside of their own data, and name the place. So where only that is blocked which the copy here was
 * read out of, the copy is dropped (`hasBlockedCopy`), and the item is looked for again. It is served where this gateway reads it
 * inside of data that is not blocked, otherwise the answer is 451. Bytes of which nobody knows what they were read out of do not
 * count then (`Wanted.needsPlace`).
 *
 * A block by hash needs the SHA-256 of the bytes. No route sends bytes whose hash it cannot compare, so each uses one of three
 * ways:
 * - Content (`/{id}`, `/raw`, frames, names, digests, `/tx/{id}/data`): the fetcher hashes it. It holds back the end until the
 *   hash is compared, or all of it where the size is that of blocked content (`ContentTransfer`). A part is fetched
 *   alone only where the digest of the whole is known. Stored content has its digest in the catalog.
 * - Chunks: the chain proves them, so the fetcher never sees them. A chunk that is a whole transaction is judged by its own hash.
 *   Other chunks are sent at once where no blocked hash has the size of their transaction. Otherwise, or where a size is unknown,
 *   the whole transaction is fetched once, at the cost of the client. Its digest is then in the catalog (`DigestLearner`). Until
 *   then, and where it is too large, the answer is 503. Chunks are not searched for items of a bundle: block the bundle instead.
 * - Answers of nodes (`/tx/{id}`, `/block/...`), which may contain data in base64url: it is decoded and hashed before it is sent
 *   (`relayed-content.ts`).
 */
export class Guard {
  readonly #caching: string

  /**
   * `maxAgeSeconds`: how long caches in front may keep a 451, and so how long a release may take to be seen behind them.
   * `uploadedIn`: the bundle that an item was uploaded in, for items that the index has in no bundle yet.
   */
  constructor(
    private readonly list: BlockList,
    private readonly catalog: Pick<Catalog, 'attributes'>,
    maxAgeSeconds: number,
    private readonly uploadedIn: (id: Id) => Id | undefined = () => undefined,
  ) {
    this.#caching = `public, max-age=${maxAgeSeconds}${maxAgeSeconds === 0 ? '' : ', immutable'}`
  }

  /** False: nothing is blocked, so no check is needed. */
  get isOn(): boolean {
    return this.list.mayBlockContent
  }

  /** False: nothing is blocked by its hash. */
  get needsDigests(): boolean {
    return this.list.mayBlockHashes
  }

  /** Changes whenever something is blocked or released. */
  get version(): number {
    return this.list.version
  }

  /** Where the version stands. Undefined: not in shared memory. */
  get versionCell(): Cell | undefined {
    return this.list.versionCell
  }

  /** Whether an entry is blocked, by everything known of it. The result is kept until the list changes. */
  blocks(entry: Entry): boolean {
    const { version } = this.list
    if (entry.clearAt === version) return false
    if (this.blocksContent(entry.attributes)) return true
    entry.clearAt = version
    return false
  }

  /** Whether an id is blocked of which nothing else is known. */
  blocksId(id: Id): boolean {
    return this.list.blocksId(id)
  }

  /** Whether content with this SHA-256 is blocked. */
  blocksDigest(digest: Uint8Array): boolean {
    return this.list.blocksDigest(digest)
  }

  /** Whether content is blocked by its id or digest, by a bundle that it lies in, or by what its copy was read out of. */
  blocksContent(subject: Subject): boolean {
    return this.isOn && (this.#blocksItself(subject) || blocksPlace(this.list, subject))
  }

  /**
   * True where the copy here was read out of what is blocked now, and nothing else of it is blocked: it must not be served, but
   * there may be others of the same item.
   */
  hasBlockedCopy(entry: Entry): boolean {
    if (!this.isOn || entry.clearAt === this.version) return false
    return blocksCopy(this.list, entry.attributes) && !this.#blocksItself(entry.attributes)
  }

  /** Whether it is blocked wherever its bytes come from. */
  #blocksItself({ id, place, digest }: Subject): boolean {
    const around = place?.isIndexed === true ? undefined : this.uploadedIn(id)
    return (
      this.list.blocksId(id, around && [around]) ||
      (digest !== undefined && this.list.blocksDigest(digest)) ||
      (place?.isIndexed === true && blocksPlace(this.list, { place }))
    )
  }

  /**
   * True where it is unknown whether `id` is blocked: a blocked hash may have its size, and the digest of `id` is not known
   * here.
   */
  lacksDigest(id: Id, sizeBytes: number): boolean {
    if (!this.needsDigests || !this.list.mayBlockSize(sizeBytes)) return false
    return this.catalog.attributes(id)?.digest === undefined
  }

  /** Whether one of these bundles is blocked. */
  blocksInside(bundles: readonly Id[]): boolean {
    return this.isOn && bundles.some((one) => this.list.blocksId(one))
  }

  /** Whether an id is blocked, by all that the catalog knows of it. */
  blocksKnown(id: Id): boolean {
    if (!this.isOn) return false
    return this.blocksContent(this.catalog.attributes(id) ?? { id })
  }

  /** Whether a name is blocked: the whole label in front of a root host, lower case. */
  blocksName(label: string): boolean {
    return this.list.blocksName(label)
  }

  /**
   * The answer in place of what is blocked; `about`: `ID: {id}` or `name: {label}`. `caching`: its Cache-Control, where not the
   * id is blocked but what its bytes would be read out of: the next request may name another place.
   */
  answer(about: string, caching = this.#caching): Blocking {
    if (!this.list.isReadable) {
      const lines = '\r\nCache-Control: no-store\r\nRetry-After: 10'
      return { status: 503, text: 'Busy: the content policy of this node cannot be read', lines }
    }
    const text = `Requested content blocked by this node's content policy. Blocked ${about}`
    return { status: 451, text, lines: `\r\nCache-Control: ${caching}` }
  }

  /** The same content, whose transfer is aborted when it is blocked meanwhile. */
  watched(content: Content, attributes: Attributes, bytes: number): Content {
    return bytes <= watchedMinBytes ? content : new WatchedContent(content, this.watch(attributes))
  }

  /**
   * For content that is not blocked now: a function that is true while that holds. It looks again only when the list has
   * changed.
   */
  watch(attributes: Attributes): () => boolean {
    let clearAt = this.version
    return () => {
      const { version } = this
      if (version === clearAt) return true
      if (this.blocksContent(attributes)) return false
      clearAt = version
      return true
    }
  }
}

/** Content that is being sent, checked again whenever something new is blocked. */
class WatchedContent implements Content {
  constructor(
    private readonly content: Content,
    private readonly isClear: () => boolean,
  ) {}

  get sizeBytes(): number {
    return this.content.sizeBytes
  }

  read(start: number, end: number): Uint8Array | undefined {
    return this.isClear() ? this.content.read(start, end) : undefined
  }

  ready(start: number, end: number): Promise<boolean> {
    return this.isClear() ? this.content.ready(start, end) : Promise.resolve(false)
  }

  close(): void {
    this.content.close()
  }
}
