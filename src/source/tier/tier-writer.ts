import { Backoff } from '../../actor/backoff.js'
import type { Clock, Timer } from '../../actor/clock.js'
import { FairSlots } from '../../actor/fair-slots.js'
import type { Log } from '../../actor/log.js'
import type { Attributes } from '../../catalog/attributes.js'
import type { LmdbCatalog } from '../../catalog/reader.js'
import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { BlobStore } from '../../store/blobs.js'
import { tryWrite } from '../../store/disk-error.js'
import type { ObjectStore } from '../objects/object-store.js'
import type { BundleLister } from './bundle-lister.js'
import type { ListingPublisher } from './listing-publisher.js'
import { type LocalObject, openLocalObject } from './local-object.js'
import { OpenPack } from './open-pack.js'
import type { PackFollower } from './pack-follower.js'
import type { PutBudget, PutLimit } from './put-budget.js'
import type { TierKeys } from './tier-keys.js'
import type { TierRecords } from './tier-records.js'
import { objectMetadata } from './tier-source.js'

/** What became of content that was to be put. */
export type PutOutcome = 'object' | 'packed' | 'present' | 'unsuited' | 'failed'

export interface TierWriterParts {
  readonly store: ObjectStore
  readonly keys: TierKeys
  readonly records: TierRecords
  readonly budget: PutBudget
  readonly follower: PackFollower
  readonly publisher: ListingPublisher
  readonly bundles: BundleLister
  readonly catalog: Pick<LmdbCatalog, 'attributes' | 'blobSize'>
  readonly blobs: Pick<BlobStore, 'open'>
  /** Content that must not be put. */
  readonly isForbidden: (id: Id, digest: Uint8Array) => boolean
  /** The store lost what was put there: everything is to be put again. */
  readonly onOlder: () => void
  readonly put: (outcome: PutOutcome, count: number) => void
  readonly clock: Clock
  readonly log: Log
}

export interface TierWriterOptions {
  /** Smaller content goes into packs. */
  readonly keepMinBytes: number
  /** Larger content is not put: one PUT takes no more. */
  readonly objectMaxBytes: number
  /** Objects of their own that are put at the same time. */
  readonly objectsAtOnce: number
  /** A pack that is not full is put after so long. */
  readonly gatherMs: number
  /** Between two looks at what waits. */
  readonly roundMs: number
  /** Contents on the list; what comes beyond is found by a push over all content. */
  readonly waitingMax: number
}

export const tierWriterDefaults: Omit<TierWriterOptions, 'keepMinBytes'> = {
  objectMaxBytes: 5 * 2 ** 30,
  objectsAtOnce: 2,
  gatherMs: 10_000,
  roundMs: 1000,
  waitingMax: 200_000,
}

const batchMax = 256
/** Ids in memory until they are written down: what was verified in a second. */
const freshMax = 20_000

/** One way over the list; the first refusal ends it. */
interface Round {
  readonly running: Set<Promise<void>>
  refusal: Refusal | undefined
}

/**
 * Puts verified content into the store, in the background: from a list on disk, so that a killed process goes on where it was. At
 * most one pack and some pieces of files are in memory. While the store fails, the list waits.
 */
export class TierWriter {
  readonly #pack: OpenPack
  readonly #slots: FairSlots
  readonly #rest: Backoff
  readonly #fresh = new Set<Id>()
  #timer: Timer | undefined
  #round: Promise<void> | undefined
  readonly #abort = new AbortController()
  #isMissed = false
  #drainsWanted = 0
  #drainsDone = 0

  constructor(
    private readonly parts: TierWriterParts,
    private readonly options: TierWriterOptions,
  ) {
    const { store, keys, publisher, clock } = parts
    this.#pack = new OpenPack(store, keys, publisher, clock)
    this.#slots = FairSlots.unbounded(options.objectsAtOnce)
    this.#rest = new Backoff({ failuresMax: 1, restMs: 1000, restMaxMs: 60_000 }, clock)
  }

  start(): void {
    this.#timer = this.parts.clock.every(this.options.roundMs, () => this.#wake())
  }

  /** Why nothing is put for now. */
  get limit(): PutLimit | undefined {
    const { budget, records } = this.parts
    const { limit } = budget
    return limit === 'daily limit' && records.isOrdered ? undefined : limit
  }

  /** Contents that wait, those in memory included. */
  get waiting(): number {
    return this.parts.records.waitingCount + this.#fresh.size
  }

  /** Has everything put that waits now, a pack that is not full, too. The number is for `isDrained`. */
  drain(): number {
    this.#drainsWanted += 1
    return this.#drainsWanted
  }

  /** Whether everything is put that waited at the time of this `drain`. */
  isDrained(number: number): boolean {
    return this.#drainsDone >= number
  }

  /** Content on disk is not in the store, and not on the list. */
  miss(): void {
    this.#isMissed = true
  }

  /** Some content found no room on the list since this was called last. */
  takeMissed(): boolean {
    const isMissed = this.#isMissed
    this.#isMissed = false
    return isMissed
  }

  /** This content was verified, and is on disk. */
  add(id: Id): void {
    if (this.#fresh.size < freshMax) this.#fresh.add(id)
    else this.#isMissed = true
  }

  /** Writes down what waits in memory; what is under way is given up, and done by the next process. */
  async stop(): Promise<void> {
    this.#timer?.cancel()
    this.#abort.abort()
    await this.#round
    this.#note()
  }

  #wake(): void {
    this.#note()
    if (this.#round !== undefined || this.#rest.isOn || this.#abort.signal.aborted) return
    if (this.parts.records.waitingCount === 0) {
      if (this.#fresh.size === 0) this.#drainsDone = this.#drainsWanted
      return
    }
    if (this.limit !== undefined) return
    this.#round = this.#work()
      .catch((error: unknown) => {
        this.parts.log.error({ err: error }, 'content could not be put into the object store: tried again')
        this.#rest.failed()
      })
      .finally(() => {
        this.#round = undefined
      })
  }

  #note(): void {
    if (this.#fresh.size === 0) return
    const { records } = this.parts
    const room = this.options.waitingMax - records.waitingCount
    const ids = [...this.#fresh].filter((id) => !records.has(id)).slice(0, Math.max(0, room))
    if (ids.length < this.#fresh.size && room <= this.#fresh.size) this.#isMissed = true
    // Where the disk refuses they wait in memory.
    const isDone = ids.length === 0 || !isRefusal(tryWrite(() => records.wait(ids)))
    if (isDone) this.#fresh.clear()
  }

  /** Goes once over all that waits. */
  async #work(): Promise<void> {
    const round: Round = { running: new Set(), refusal: undefined }
    const drains = this.#drainsWanted
    let after: Id | undefined
    while (this.#goesOn(round)) {
      const ids = this.parts.records.waiting(after, batchMax)
      if (ids.length === 0) break
      after = ids.at(-1)
      for (const id of ids) if (this.#goesOn(round)) await this.#begin(id, round)
    }
    await Promise.all(round.running)
    const isDue = this.#pack.ageMs >= this.options.gatherMs || drains > this.#drainsDone
    if (this.#goesOn(round) && isDue) round.refusal = await this.#flush()
    if (this.#goesOn(round)) this.#drainsDone = drains
    if (round.refusal === undefined) this.#rest.well()
    else this.#rest.failed()
  }

  #spend(bytes: number): void {
    const { budget, records } = this.parts
    const count = budget.spend(bytes)
    // Where the disk refuses it is written with the next one.
    tryWrite(() => records.counted(count))
  }

  #goesOn({ refusal }: Round): boolean {
    return refusal === undefined && !this.#abort.signal.aborted && this.limit === undefined
  }

  /** Into the pack, or begins to put it as an object of its own. */
  async #begin(id: Id, round: Round): Promise<void> {
    const { records, put, log } = this.parts
    if (this.#pack.has(id)) return
    const known = this.#suited(id)
    if (known !== undefined) this.parts.bundles.note(known)
    if (known === undefined || records.has(id)) {
      records.drop([id])
      put(known === undefined ? 'unsuited' : 'present', 1)
    } else if (known.size < this.options.keepMinBytes) round.refusal ??= await this.#gather(known)
    else {
      await this.#slots.run(() => Promise.resolve())
      const over = this.parts.budget.begin(known.size)
      const one = this.#slots
        .run(() => this.#object(known))
        .then((refusal) => {
          round.refusal ??= refusal
        })
        .catch((error: unknown) => {
          log.error({ err: error, id }, 'content could not be put into the object store: tried again')
          round.refusal ??= refuse('busy', 'self', 'the disk failed')
        })
        .finally(() => {
          over()
          round.running.delete(one)
        })
      round.running.add(one)
    }
  }

  #suited(id: Id): (Attributes & { readonly digest: Uint8Array }) | undefined {
    const { catalog, isForbidden } = this.parts
    const known = catalog.attributes(id)
    const { digest } = known ?? {}
    if (known === undefined || digest === undefined || !known.verified) return undefined
    if (known.size > this.options.objectMaxBytes || catalog.blobSize(digest) === undefined) return undefined
    return isForbidden(id, digest) ? undefined : { ...known, digest }
  }

  /** Opens content and checks it; what is not as it must be is left out. */
  async #opened(known: Attributes & { readonly digest: Uint8Array }): Promise<LocalObject | undefined> {
    const object = await openLocalObject(known, known.digest, this.parts.blobs)
    if (object !== undefined) return object
    this.parts.records.drop([known.id])
    this.parts.put('unsuited', 1)
    return undefined
  }

  async #gather(known: Attributes & { readonly digest: Uint8Array }): Promise<Refusal | undefined> {
    const object = await this.#opened(known)
    if (object === undefined) return undefined
    try {
      if (!this.#pack.hasRoom(object.sizeBytes)) {
        const refusal = await this.#flush()
        if (refusal !== undefined) return refusal
      }
      await this.#pack.add(known.id, object)
      return undefined
    } finally {
      await object.close()
    }
  }

  async #flush(): Promise<Refusal | undefined> {
    const { follower, onOlder, put } = this.parts
    const { signal } = this.#abort
    const isCurrent = await follower.isCurrent(signal)
    if (isRefusal(isCurrent)) return isCurrent
    if (!isCurrent) {
      this.#pack.clear()
      onOlder()
      return undefined
    }
    const { sizeBytes } = this.#pack
    const count = await this.#pack.flush(signal)
    if (isRefusal(count)) {
      put('failed', this.#pack.count)
      return count
    }
    this.#spend(sizeBytes)
    put('packed', count)
    return undefined
  }

  async #object(known: Attributes & { readonly digest: Uint8Array }): Promise<Refusal | undefined> {
    const { store, keys, records, put } = this.parts
    const { signal } = this.#abort
    const key = keys.object(known.id)
    const object = await this.#opened(known)
    if (object === undefined) return undefined
    try {
      const head = await store.head(key, signal)
      const isThere = !isRefusal(head) && head.sizeBytes === object.sizeBytes
      if (isRefusal(head) && head.refused !== 'unknown') return head
      const { sizeBytes, sha256, contentType } = object
      const content = {
        sizeBytes,
        sha256,
        bytes: () => object.bytes(),
        ...(contentType === '' ? {} : { contentType }),
        metadata: metadataOf(object),
      }
      const done = isThere ? 'exists' : await store.put(key, content, { signal })
      if (isRefusal(done)) {
        put('failed', 1)
        return done
      }
      records.stored([known.id])
      if (done === 'put') this.#spend(sizeBytes)
      put(done === 'put' ? 'object' : 'present', 1)
      return undefined
    } finally {
      await object.close()
    }
  }
}

function metadataOf({ dataStart, contentType, root }: LocalObject): Record<string, string> {
  return {
    ...(dataStart === 0 ? {} : { [objectMetadata.dataStart]: String(dataStart) }),
    ...(contentType === '' ? {} : { [objectMetadata.contentType]: contentType }),
    ...(root === undefined
      ? {}
      : { [objectMetadata.rootId]: root.id, [objectMetadata.rootItemOffset]: String(root.itemOffset) }),
  }
}
