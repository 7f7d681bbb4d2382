import type { Caller } from '../../actor/mailbox-address.js'
import type { Id } from '../../format/id.js'
import { isRefusal, type Reason, type Refusal, refuse } from '../../format/refusal.js'
import type { Announcement } from '../announcement.js'
import type { ManifestCache, ManifestText } from '../keeping/manifest-cache.js'
import type { Pins } from '../keeping/pins.js'
import type { Soundness } from '../proving/soundness.js'
import type { StoredItems } from '../proving/stored-items.js'
import type { ProgressTable } from '../reading/progress-table.js'
import { stillUnknown } from '../refusals.js'
import type { Source } from '../source.js'
import type {
  ContentRequest,
  Hints,
  ManifestFrom,
  OpenMessage,
  SourceProgress,
  SourceReply,
  SourceRequest,
} from '../source-messages.js'
import type { TrailRules } from '../upstream/trail.js'
import type { Absences } from './absences.js'
import { BackgroundFills, type FillOptions } from './background-fills.js'
import { isBlockedCopy } from './blocked-bytes.js'
import { ContentTransfer } from './content-transfer.js'
import { JoinableTransfers } from './joinable-transfers.js'
import { openedOf, placedOf } from './open-replies.js'
import type { TransferParts } from './transfer-parts.js'
import { ProgressSlots, TransferProgress } from './transfer-progress.js'
import { type TransferShare, TransferShares } from './transfer-shares.js'

export interface FetcherOptions {
  /** Transfers under way at once; one more is refused `busy`. */
  readonly fetchesMax: number
  /** A window this near behind what has arrived waits for the running transfer instead of opening its own. */
  readonly joinBytes: number
  /** Objects up to this size are fetched whole where the window starts within `joinBytes`. */
  readonly wholeForWindowMaxBytes: number
  /** Which requests may be passed on to other gateways (loop defence). */
  readonly trail: TrailRules
  /** Absent: what nobody knows is requested each time. */
  readonly absences?: Absences
  /** Payloads of which windows were read are brought whole. Absent: they are not. */
  readonly fills?: FillOptions
  /** Absent: nothing can be pinned. */
  readonly pins?: Pick<Pins, 'set' | 'count'>
  /** The packed forms of manifests. */
  readonly manifests: ManifestCache
  /** Brings proven bytes only. Absent: nothing is brought by order. */
  readonly provenSource?: Source
  /** Absent: no item is judged where it lies in a bundle. */
  readonly storedItems?: Pick<StoredItems, 'judge'>
}

type Hearer = Caller<SourceProgress>

/** Transfers that are waited for, one after the other, until the digest of a payload is given up. */
const learnTriesMax = 3

/** What a source that cannot say whether it has something answers. */
const failures: ReadonlySet<Reason> = new Set(['upstream', 'late', 'forged', 'defect'])

const enough = refuse('busy', 'client', 'too many transfers of one client are under way')

interface Reader {
  readonly transfer: ContentTransfer
  readonly caller: Hearer
}

/** Owner of every transfer: one per payload, however many readers there are. */
export class Fetcher {
  readonly #slots: ProgressSlots
  readonly #joinable: JoinableTransfers
  readonly #running = new Map<ContentTransfer, Promise<void>>()
  readonly #readers = new Map<number, Reader>()
  readonly #shares: TransferShares
  readonly #taken = new Map<ContentTransfer, TransferShare>()
  readonly #fills: BackgroundFills | undefined
  #lastReader = 0
  #stopping = false

  constructor(
    table: ProgressTable,
    private readonly parts: TransferParts,
    private readonly soundness: Soundness,
    private readonly options: FetcherOptions,
  ) {
    this.#slots = new ProgressSlots(table)
    this.#joinable = new JoinableTransfers(options.trail)
    this.#shares = new TransferShares(options.fetchesMax, table.slots)
    const { fills } = options
    this.#fills =
      fills &&
      new BackgroundFills(
        fills,
        (id) => this.#fill(id),
        () => parts.meters.filled(),
      )
  }

  /** Slots held by readers and transfers. */
  get held(): number {
    return this.#slots.taken
  }

  /** Answers one message of an edge thread; `caller` hears of progress. */
  async handle(message: SourceRequest, caller: Hearer): Promise<SourceReply | undefined> {
    switch (message.kind) {
      case 'open':
        return this.#open(message, caller)
      case 'close':
        this.#closeReader(message.reader)
        return undefined
      case 'evict':
        return { kind: 'evicted', dropped: await this.parts.blobCache.drop(message.digest) }
      case 'pin': {
        const { pins } = this.options
        const isDone = pins?.set(message.digest, message.isPinned, message.bundle) ?? false
        return { kind: 'pinned', isDone, count: pins?.count ?? 0 }
      }
      case 'check': {
        const sound = await this.soundness.check(message.id, message.digest)
        return isRefusal(sound) ? { kind: 'refused', refusal: sound } : { kind: 'checked', sound }
      }
      case 'judge-item': {
        const sound = (await this.options.storedItems?.judge(message.id)) ?? false
        return isRefusal(sound) ? { kind: 'refused', refusal: sound } : { kind: 'checked', sound }
      }
      case 'fetch-proven':
        await this.#fetchProven(message.id)
        return { kind: 'fetched' }
      case 'digest': {
        const digest = await this.#digestOf(message.id)
        return isRefusal(digest) ? { kind: 'refused', refusal: digest } : { kind: 'digest', digest }
      }
      // The source thread answers it before (`answerTier`), where there is an object store.
      case 'object-store':
        return { kind: 'object-store' }
      case 'manifest': {
        const text = this.#manifestText(message.from)
        const packed = isRefusal(text) ? text : await this.options.manifests.bring(text, message.again)
        return isRefusal(packed) ? { kind: 'refused', refusal: packed } : { kind: 'packed', ...packed }
      }
    }
  }

  async #digestOf(id: Id): Promise<Uint8Array | Refusal> {
    const request: ContentRequest = {
      id,
      hints: {},
      provenance: { hops: 0, via: [], forward: true },
    }
    // A transfer of others may end with its last reader: then it is begun anew.
    for (let tries = 0; tries < learnTriesMax; tries += 1) {
      const known = this.parts.catalog.attributes(id)?.digest
      if (known !== undefined) return known
      const transfer = this.#join(request) ?? this.#start(request)
      if (isRefusal(transfer)) return transfer
      await this.#running.get(transfer)
      const digest = transfer.progress.state === 'whole' ? transfer.announced?.attributes.digest : undefined
      if (digest !== undefined) return digest
      const announcement = await transfer.announcement
      if (isRefusal(announcement)) return announcement
    }
    return refuse('upstream', 'upstream', 'the bytes could not be read to their end')
  }

  /** Fetches the whole of a payload for no reader, without the hints of any client: they do not decide what others get. */
  async #fill(id: Id): Promise<void> {
    const request: ContentRequest = {
      id,
      hints: {},
      provenance: { hops: 0, via: [], forward: true },
    }
    if (this.#join(request) === undefined) await this.#started(request)
  }

  /** Resolves when a new transfer is over, at once where it may not begin. */
  async #started(request: ContentRequest, parts = this.parts): Promise<void> {
    const transfer = this.#start(request, parts)
    if (!isRefusal(transfer)) await this.#running.get(transfer)
  }

  #manifestText(from: ManifestFrom): ManifestText | Refusal {
    if ('digest' in from) {
      const { digest } = from
      return { ...this.parts.store.part(digest), digest }
    }
    const transfer = this.#readers.get(from.reader)?.transfer
    const announced = transfer?.progress.state === 'whole' ? transfer.announced : undefined
    if (announced === undefined)
      return refuse('upstream', 'upstream', 'the manifest could not be read to its end')
    const { path, offset, sizeBytes } = announced
    return { path, offset, sizeBytes, digest: announced.attributes.digest }
  }

  /** An edge thread is gone: all its readers leave. */
  forget(caller: Hearer): void {
    for (const [reader, one] of [...this.#readers]) if (one.caller === caller) this.#closeReader(reader)
  }

  /**
   * Brings a payload into the store from `source`, for no reader. Resolves when it is there, or could not be had; nothing
   * happens where a transfer of it is under way.
   */
  async fetchFrom(id: Id, hints: Hints, source: Source): Promise<void> {
    const provenance = { hops: 0, via: [], forward: false }
    const request: ContentRequest = { id, hints, provenance }
    if (this.#join(request) === undefined) await this.#started(request, { ...this.parts, source })
  }

  /** Refuses new transfers, stops those that are far from done, waits for the rest. */
  async stop(): Promise<void> {
    this.#stopping = true
    this.#fills?.stop()
    for (const transfer of this.#joinable.all) {
      if (transfer.announced === undefined) transfer.stop()
      else transfer.abandon()
    }
    while (this.#running.size > 0) await Promise.all(this.#running.values())
    await this.parts.blobCache.settled()
    for (const reader of [...this.#readers.keys()]) this.#closeReader(reader)
  }

  /** Resolves when the catalog knows of it. */
  async #fetchProven(id: Id): Promise<void> {
    const { provenSource } = this.options
    if (provenSource === undefined) return
    await this.fetchFrom(id, {}, provenSource)
    await this.parts.blobCache.settled()
  }

  async #open(request: OpenMessage, caller: Hearer): Promise<SourceReply> {
    const { absences } = this.options
    // A request with a place is not answered from the cache of absences.
    const isGuided = request.hints.rootId !== undefined
    const absentMs = isGuided ? 0 : (absences?.leftMs(request.id) ?? 0)
    if (absentMs > 0) return { kind: 'refused', refusal: stillUnknown(absentMs) }
    const uncommitted = this.parts.blobCache.uncommitted.get(request.id)
    const isUsed =
      request.readsSegments === true && !isBlockedCopy(this.parts.forbidden, uncommitted?.attributes)
    const here = uncommitted === undefined || !isUsed ? undefined : placedOf(uncommitted)
    if (here !== undefined) return here
    const generation = this.parts.catalog.generation(request.id)
    const joined = this.#join(request)
    const transfer = joined ?? this.#start(request)
    if (isRefusal(transfer)) return { kind: 'refused', refusal: transfer }
    this.#lastReader += 1
    const reader = this.#lastReader
    transfer.progress.addReader(reader, caller)
    this.#readers.set(reader, { transfer, caller })
    const announcement = await transfer.announcement
    if (joined === undefined) this.#noteOutcome(request, announcement, generation)
    if (isRefusal(announcement)) {
      this.#closeReader(reader)
      return { kind: 'refused', refusal: announcement }
    }
    const announced = transfer.announced ?? announcement
    const placed = request.readsSegments === true ? placedOf(announced) : undefined
    if (placed === undefined) return openedOf(reader, transfer, announced)
    this.#closeReader(reader)
    return placed
  }

  /** Records how a request ended, for the next one about the same id. Failures with a client's own hints do not count. */
  #noteOutcome(request: ContentRequest, announcement: Announcement | Refusal, generation: number): void {
    const { absences } = this.options
    const { id } = request
    if (!isRefusal(announcement)) absences?.note(id, 'found')
    else if (this.#joinable.variantOf(request) !== '') return
    else if (failures.has(announcement.refused)) absences?.note(id, 'failed')
    else if (announcement.refused === 'unknown' && announcement.isUnsure !== true)
      absences?.miss(id, generation)
  }

  /**
   * A transfer under way that serves this request. One without bytes is joined by requests with the same hops alone, also because
   * a request with hops may be this gateway's own in a loop, which would wait for itself.
   */
  #join(request: ContentRequest): ContentTransfer | undefined {
    const extents = this.#isUnjudged(request) ? (['whole'] as const) : (['whole', 'window'] as const)
    return this.#joinable.candidatesFor(request, extents).find((transfer) => this.#reaches(transfer, request))
  }

  /** Whether a transfer brings, soon enough, what a request wants. */
  #reaches(transfer: ContentTransfer, { window }: ContentRequest): boolean {
    if (transfer.progress.state === 'broken') return false
    if (isBlockedCopy(this.parts.forbidden, transfer.announced?.attributes)) return false
    if (window === undefined || transfer.request.window !== undefined || transfer.progress.state === 'whole')
      return true
    return window.start <= transfer.progress.readable + this.options.joinBytes
  }

  /** Begins a transfer, or says why not. */
  #start(request: ContentRequest, parts = this.parts): ContentTransfer | Refusal {
    // What only waits for the disk takes nothing from a source.
    const underWay = this.#running.size - this.parts.blobCache.waiting
    if (this.#stopping || underWay >= this.options.fetchesMax) {
      return refuse('busy', 'self', 'too many transfers are under way')
    }
    const share = this.#shares.take(request.client)
    if (share === undefined) return enough
    const slot = this.#slots.take()
    if (slot === undefined) {
      share.over()
      share.left()
      return refuse('busy', 'self', 'too many readers are under way')
    }
    const separate = request.window !== undefined && !this.#wholeInstead(request)
    const progress = new TransferProgress(this.#slots.table, slot, share.over)
    const transfer = new ContentTransfer(separate ? request : wholeOf(request), progress, parts)
    this.#joinable.add(request, separate ? 'window' : 'whole', transfer)
    this.#taken.set(transfer, share)
    const run = transfer.run().finally(() => {
      share.over()
      this.#joinable.remove(transfer)
      this.#running.delete(transfer)
      if (separate) this.#fillAfter(transfer)
      if (transfer.progress.readers === 0) this.#release(transfer)
    })
    this.#running.set(transfer, run)
    return transfer
  }

  /**
   * Whether the whole is fetched for a window: near the start of cached or small content, where it is as fast and is stored. Also
   * for suspects, and where only the digest shows whether the content is blocked.
   */
  #wholeInstead(request: ContentRequest): boolean {
    const { id, window } = request
    if (this.parts.suspects.has(id) || this.#isUnjudged(request)) return true
    const known = this.parts.catalog.attributes(id)
    if (known?.digest !== undefined && this.parts.catalog.blobSize(known.digest) !== undefined) return true
    if (window === undefined || window.start > this.options.joinBytes) return false
    return known === undefined || known.size <= this.options.wholeForWindowMaxBytes
  }

  /** Whether a window could have bytes of content that is blocked by its hash: a window's own hash proves nothing. */
  #isUnjudged({ id, window }: ContentRequest): boolean {
    const { forbidden, catalog } = this.parts
    if (window === undefined || forbidden?.mayBlockSize() !== true) return false
    const known = catalog.attributes(id)
    return known?.digest === undefined && forbidden.mayBlockSize(known?.size)
  }

  /** A window is over: is the whole of its payload to follow? */
  #fillAfter({ request, announced, progress }: ContentTransfer): void {
    if (announced === undefined || progress.state !== 'whole' || announced.source === 'cache') return
    this.#fills?.want(request.id, announced.attributes.size)
  }

  #closeReader(reader: number): void {
    const found = this.#readers.get(reader)
    if (found === undefined) return
    this.#readers.delete(reader)
    const { transfer } = found
    transfer.progress.removeReader(reader)
    if (transfer.progress.readers > 0) return
    if (!this.#joinable.has(transfer)) this.#release(transfer)
    else if (!transfer.abandon()) this.#joinable.remove(transfer)
  }

  #release(transfer: ContentTransfer): void {
    this.#slots.give(transfer.progress.slot)
    this.#taken.get(transfer)?.left()
    this.#taken.delete(transfer)
    void transfer.close()
  }
}

/** The same request for the whole payload. */
function wholeOf(request: ContentRequest): ContentRequest {
  if (request.window === undefined) return request
  const { window: _, ...whole } = request
  return whole
}
