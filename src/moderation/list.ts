import type { Log } from '../actor/log.js'
import type { Cell } from '../actor/shared.js'
import { type Id, idBytes } from '../format/id.js'
import type { BlockFilter } from './block-filter.js'
import type { BlockList, SubjectKind } from './moderation-messages.js'

/** The exact look-up for what the filter cannot rule out. */
export interface Lookup {
  /** Throws where the list cannot be read. */
  has(kind: SubjectKind, key: Uint8Array): boolean
}

/** The block list of one thread: the shared filter in front, the list on disk behind it. */
export class FilteredBlockList implements BlockList {
  #isReadable = true

  constructor(
    private readonly filter: BlockFilter,
    private readonly lookup: Lookup,
    private readonly log: Log,
  ) {}

  get version(): number {
    return this.filter.version
  }

  get versionCell(): Cell {
    return this.filter.versionCell
  }

  get isReadable(): boolean {
    return this.#isReadable && this.filter.isFilled
  }

  get mayBlockContent(): boolean {
    return this.filter.holdsContents || !this.isReadable
  }

  get mayBlockHashes(): boolean {
    return this.filter.holdsHashes || !this.isReadable
  }

  mayBlockSize(sizeBytes?: number): boolean {
    if (!this.mayBlockHashes) return false
    return sizeBytes === undefined || !this.isReadable || this.filter.mayHoldSize(sizeBytes)
  }

  /** Content of exactly this size is blocked by its hash. */
  isBlockedSize(sizeBytes: number): boolean {
    return this.mayBlockHashes && this.filter.holdsSize(sizeBytes)
  }

  blocksId(id: Id, chain: readonly Id[] = []): boolean {
    if (!this.filter.isFilled) return true
    if (this.filter.version === 0) return false
    return this.#blocks(id) || chain.some((one) => this.#blocks(one))
  }

  blocksDigest(digest: Uint8Array): boolean {
    if (!this.filter.isFilled) return true
    return this.filter.version !== 0 && this.filter.mayHold(digest) && this.#has('hash', digest)
  }

  blocksName(label: string): boolean {
    if (!this.filter.isFilled) return true
    return (
      this.filter.version !== 0 && this.filter.mayHoldName(label) && this.#has('name', Buffer.from(label))
    )
  }

  #blocks(id: Id): boolean {
    return this.filter.mayHoldId(id) && this.#has('id', idBytes(id))
  }

  #has(kind: SubjectKind, key: Uint8Array): boolean {
    try {
      const has = this.lookup.has(kind, key)
      this.#isReadable = true
      return has
    } catch (error) {
      if (this.#isReadable)
        this.log.error(
          { err: error },
          'the block list cannot be read, so nothing is served: check DATA_PATH/moderation and its disk',
        )
      this.#isReadable = false
      return true
    }
  }
}
