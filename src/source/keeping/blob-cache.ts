import type { Clock } from '../../actor/clock.js'
import { FairSlots } from '../../actor/fair-slots.js'
import type { Log } from '../../actor/log.js'
import type { Address } from '../../actor/mailbox-address.js'
import type { Attributes } from '../../catalog/attributes.js'
import type { CatalogReply, CatalogRequest } from '../../catalog/catalog-messages.js'
import { latin1Text } from '../../format/latin1-text.js'
import type { BlobDraft, BlobStore, FileIdentity } from '../../store/blobs.js'
import type { SmallBlobs } from '../../store/segments/small-blobs.js'
import type { Announcement } from '../announcement.js'
import type { Hints } from '../source-messages.js'
import { CommitBatch, insist } from './commit-batch.js'
import { Uncommitted } from './uncommitted.js'

/** A payload that became a blob. */
export interface Kept {
  readonly attributes: Attributes
  readonly digest: Uint8Array
  /** Place of the item as stated by the source, unproven. */
  readonly hints: Hints
  /** Place of the item as stated by the client, unproven. */
  readonly clientHints: Hints
  /** It was requested by a name. */
  readonly named: boolean
  readonly source: string
}

/** A payload in a segment, and the answer for its readers until the catalog has it. */
interface SmallKept {
  readonly kept: Kept
  readonly announcement: Announcement
}

/** Payloads that are recorded in the catalog by one commit. */
interface Group {
  readonly outcome: Promise<boolean>
  readonly members: SmallKept[]
  readonly over: Promise<void>
}

/** Flushes at once: each occupies one of the few threads that do all file work of the process. */
const flushesMax = 2

/** Payloads on their way to the disk, each with an open file. */
const usualWaitingMax = 512

/** Hears of payloads before the catalog has their records. */
export interface KeptNotes {
  note(kept: Kept): void
  /** Right before the records of those that were noted are written. */
  commit(): void
}

export interface BlobCacheParts {
  readonly store: BlobStore
  readonly keeper: Address<CatalogRequest, CatalogReply>
  readonly clock: Clock
  readonly log: Log
  /** Hears of every payload after it counts as cached; `identity`: of its file, where it has one. */
  readonly onKept: (kept: Kept, identity: FileIdentity | undefined) => void
  /** Hears of every payload that is about to go. */
  readonly onDropped?: (digest: Uint8Array) => Promise<void>
  /** Payloads in segments. Absent: each has a file of its own. */
  readonly small?: SmallBlobs | undefined
  readonly notes?: KeptNotes | undefined
  /** What comes while so many wait for the disk is not kept: it was served, and is fetched anew with the next request. */
  readonly waitingMax?: number
}

/** Turns drafts into blobs and blobs into nothing, one change of a digest at a time. */
export class BlobCache {
  readonly #busy = new Map<string, Promise<void>>()
  readonly #flushes = FairSlots.unbounded(flushesMax)
  readonly #batch: CommitBatch
  readonly uncommitted = new Uncommitted()
  /** The next commit of small payloads. */
  #group: Group | undefined
  readonly #commits = new Set<Promise<void>>()
  #waiting = 0
  #passed = 0

  constructor(private readonly parts: BlobCacheParts) {
    const { keeper, clock, small, notes } = parts
    // Whoever hears of a payload by the catalog finds it in the index of the segments.
    this.#batch = new CommitBatch(keeper, clock, () => {
      small?.commit()
      notes?.commit()
    })
  }

  /** Payloads that were handed to `keep` and are not done. */
  get waiting(): number {
    return this.#waiting
  }

  /**
   * Writes bytes, name, record, in this order, so that an interruption leaves nothing false. With a disk that refuses or is far
   * behind the payload is not cached; its readers have the bytes. Never rejects because of the disk.
   */
  async keep(draft: BlobDraft, kept: Kept): Promise<void> {
    if (this.#waiting >= (this.parts.waitingMax ?? usualWaitingMax)) {
      this.#passed += 1
      await this.#discard(draft)
      return
    }
    this.#waiting += 1
    try {
      await this.#keep(draft, kept)
    } finally {
      this.#waiting -= 1
      if (this.#waiting === 0 && this.#passed > 0) {
        this.parts.log.warn(
          { payloads: this.#passed },
          'the disk was too slow: these payloads were served, but not cached',
        )
        this.#passed = 0
      }
    }
  }

  #keep(draft: BlobDraft, kept: Kept): Promise<void> {
    return this.#alone(kept.digest, async () => {
      const { attributes, digest } = kept
      let identity: FileIdentity
      try {
        identity = await this.#flushes.run(() => this.parts.store.keep(draft, digest))
      } catch (error) {
        this.parts.log.error({ err: error, id: attributes.id }, 'a payload could not be written to the cache')
        await this.#discard(draft)
        return
      }
      this.parts.notes?.note(kept)
      this.parts.notes?.commit()
      const requests: CatalogRequest[] = [
        { kind: 'kept', digest, sizeBytes: attributes.size },
        { kind: 'learn', attributes: [attributes] },
      ]
      if (await insist(this.parts.keeper, { kind: 'all', requests })) this.parts.onKept(kept, identity)
      else
        this.parts.log.error({ id: attributes.id }, 'a cached payload could not be recorded in the catalog')
    })
  }

  /**
   * The payload is in a segment already. It is reported to the catalog together with others; `uncommitted` has `announcement`
   * until then. A record without bytes is noticed at the next request, and bytes without a record leave with their segment.
   * Returns a promise where so many wait that the caller should wait, too. Never rejects because of the disk.
   */
  keepSmall(kept: Kept, announcement: Announcement): Promise<void> | undefined {
    this.uncommitted.note(announcement)
    const key = latin1Text(kept.digest)
    let over: Promise<void>
    if (this.#busy.has(key)) {
      over = this.#alone(kept.digest, () => this.#commitSmall(kept, announcement))
      this.#watch(over)
    } else {
      over = this.#commitSmall(kept, announcement)
      this.#busy.set(key, over)
    }
    return this.uncommitted.isFull ? over : undefined
  }

  /**
   * Adds it to the next commit, and resolves after that. Payloads of one commit share a promise. Separate promises would live
   * until the commit, and each collection of young garbage would copy them.
   */
  #commitSmall(kept: Kept, announcement: Announcement): Promise<void> {
    const { attributes, digest } = kept
    this.parts.notes?.note(kept)
    const outcome = this.#batch.add([
      { kind: 'kept', digest, sizeBytes: attributes.size, isSmall: true },
      { kind: 'learn', attributes: [attributes] },
    ])
    let group = this.#group
    if (group?.outcome !== outcome) {
      const members: SmallKept[] = []
      const over: Promise<void> = outcome.then((isTaken) => this.#committed(members, isTaken, over))
      group = { outcome, members, over }
      this.#group = group
      this.#watch(over)
    }
    group.members.push({ kept, announcement })
    return group.over
  }

  #committed(members: readonly SmallKept[], isTaken: boolean, over: Promise<void>): void {
    if (this.#group?.members === members) this.#group = undefined
    for (const { kept, announcement } of members) {
      const key = latin1Text(kept.digest)
      if (this.#busy.get(key) === over) this.#busy.delete(key)
      this.uncommitted.forget(announcement)
      if (isTaken) this.parts.onKept(kept, undefined)
      else
        this.parts.log.error(
          { id: kept.attributes.id },
          'a cached payload could not be recorded in the catalog',
        )
    }
  }

  #watch(commit: Promise<void>): void {
    this.#commits.add(commit)
    void commit.finally(() => this.#commits.delete(commit))
  }

  /** Resolves when the catalog has every small payload. */
  async settled(): Promise<void> {
    this.#batch.flush()
    while (this.#commits.size > 0) await Promise.all(this.#commits)
  }

  /** Counts payloads in files as used now. */
  async spare(digests: readonly Uint8Array[]): Promise<void> {
    await insist(this.parts.keeper, { kind: 'touched', digests })
  }

  /** These payloads went with their segment. Never rejects. */
  async forget(digests: readonly Uint8Array[]): Promise<void> {
    // Their presence must be reported first.
    this.#batch.flush()
    const requests = digests.map((digest): CatalogRequest => ({ kind: 'dropped', digest }))
    if (!(await insist(this.parts.keeper, { kind: 'all', requests }))) {
      this.parts.log.warn(
        { payloads: digests.length },
        'removed payloads could not be deleted from the catalog',
      )
    }
    try {
      for (const digest of digests) await this.parts.onDropped?.(digest)
    } catch (error) {
      this.parts.log.error({ err: error }, 'files that belong to removed payloads could not be deleted')
    }
  }

  /**
   * Record first, then the file: a reader that finds the record finds the file, or fetches it anew. False: the keeper did not
   * commit the change, and nothing was removed. `touchedMs`: where it stands in the order of uses, which may be all that is left
   * of it.
   */
  async drop(digest: Uint8Array, touchedMs?: number): Promise<boolean> {
    let dropped = false
    await this.#alone(digest, async () => {
      const place = touchedMs === undefined ? {} : { touchedMs }
      dropped = await insist(this.parts.keeper, { kind: 'dropped', digest, ...place })
      if (!dropped) return
      try {
        await this.parts.onDropped?.(digest)
        this.parts.small?.remove(digest)
        await this.parts.store.remove(digest)
      } catch (error) {
        // Without a record it is not served, and swept as any file that nothing knows.
        this.parts.log.error({ err: error }, 'a file of the cache could not be deleted')
      }
    })
    return dropped
  }

  /** A draft that the disk does not remove is swept at the next start. */
  async #discard(draft: BlobDraft): Promise<void> {
    try {
      await this.parts.store.discard(draft)
    } catch (error) {
      this.parts.log.error({ err: error }, 'an unfinished file of the cache could not be deleted')
    }
  }

  /** Removes a file that has no record. `recorded` is called once more when nothing else happens to the digest. */
  sweep(digest: Uint8Array, recorded: () => boolean): Promise<void> {
    return this.#alone(digest, async () => {
      if (!recorded()) await this.parts.store.remove(digest)
    })
  }

  async #alone(digest: Uint8Array, act: () => Promise<void>): Promise<void> {
    const key = latin1Text(digest)
    const before = this.#busy.get(key)
    const turn = (before ?? Promise.resolve()).then(act, act)
    this.#busy.set(key, turn)
    try {
      await turn
    } finally {
      if (this.#busy.get(key) === turn) this.#busy.delete(key)
    }
  }
}
