import type { Log } from '../actor/log.js'
import type { Cell } from '../actor/shared.js'
import { type Id, idBytes } from '../format/id.js'
import type { BlockList, SubjectKind } from './moderation-messages.js'
import type { Sieve } from './sieve.js'

/** The exact look-up for what the sieve cannot rule out. */
export interface Lookup {
  /** Throws where the list cannot be read. */
  has(kind: SubjectKind, key: Uint8Array): boolean
}

/** The block list of one thread: the shared sieve in front, the list on disk behind it. */
export class SievedBlockList implements BlockList {
  #isReadable = true

  constructor(
    private readonly sieve: Sieve,
    private readonly lookup: Lookup,
    private readonly log: Log,
  ) {}

  get version(): number {
    return this.sieve.version
  }

  get versionCell(): Cell {
    return this.sieve.versionCell
  }

  get isReadable(): boolean {
    return this.#isReadable && this.sieve.isFilled
  }

  get mayBlockContent(): boolean {
    return this.sieve.holdsContents || !this.isReadable
  }

  get mayBlockHashes(): boolean {
    return this.sieve.holdsHashes || !this.isReadable
  }

  mayBlockSize(sizeBytes: number): boolean {
    return !this.isReadable || this.sieve.mayHoldSize(sizeBytes)
  }

  blocksId(id: Id, chain: readonly Id[] = []): boolean {
    if (!this.sieve.isFilled) return true
    if (this.sieve.version === 0) return false
    return this.#blocks(id) || chain.some((one) => this.#blocks(one))
  }

  blocksDigest(digest: Uint8Array): boolean {
    if (!this.sieve.isFilled) return true
    return this.sieve.version !== 0 && this.sieve.mayHold(digest) && this.#has('hash', digest)
  }

  blocksName(label: string): boolean {
    if (!this.sieve.isFilled) return true
    return this.sieve.version !== 0 && this.sieve.mayHoldName(label) && this.#has('name', Buffer.from(label))
  }

  #blocks(id: Id): boolean {
    return this.sieve.mayHoldId(id) && this.#has('id', idBytes(id))
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
