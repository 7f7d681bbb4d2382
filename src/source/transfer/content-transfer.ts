import type { FileHandle } from 'node:fs/promises'
import { LazySignal } from '../../actor/lazy-signal.js'
import type { Attributes } from '../../catalog/attributes.js'
import { isBug } from '../../format/bug.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { BlobDraft } from '../../store/blobs.js'
import type { SmallBlobs } from '../../store/segments/small-blobs.js'
import type { Announcement } from '../announcement.js'
import type { Kept } from '../keeping/blob-cache.js'
import { defect, forbiddenBytes, tooMuchAnnounced, unknownEverywhere, weightier } from '../refusals.js'
import type { Found } from '../source.js'
import type { ContentRequest, Window } from '../source-messages.js'
import { windowIn } from '../window-in.js'
import { BlockedBytes } from './blocked-bytes.js'
import { cancelBody } from './cancel-body.js'
import { TransferDraft } from './draft-room.js'
import { FileWriter } from './file-writer.js'
import { Gathering } from './gathering.js'
import { openLocal } from './local-blob.js'
import { resuming } from './resuming.js'
import { judgeSize, TransferJudge } from './transfer-judge.js'
import type { TransferParts } from './transfer-parts.js'
import { openablePath, type TransferProgress } from './transfer-progress.js'
import {
  announcementOf,
  attributesFound,
  placeIn,
  type TransferPlace,
  type TransferTarget,
  type WholeTransfer,
  wantedOf,
} from './transfer-target.js'
import { writeAside } from './write-aside.js'

/** A disk with so much room is not full. */
const plentyBytes = 2 ** 30

/** One payload (or window) on its way into a file, for any number of readers. Ends by itself; see `run`. */
export class ContentTransfer {
  /** Size, type and place of the bytes, as readers get them; or the reason why there are none. */
  readonly announcement: Promise<Announcement | Refusal>
  #stopped = false
  #attempt: LazySignal | undefined
  #resolve: (announcement: Announcement | Refusal) => void = () => undefined
  #announced: Announcement | undefined
  /** Attributes from the catalog before the first source was tried, while they are up to date. */
  #known: Attributes | undefined
  #isKnownRead = false
  #fileBytes = 0
  #handle: FileHandle | undefined
  readonly #draft: TransferDraft
  readonly #blocked: BlockedBytes
  readonly #judge: TransferJudge

  constructor(
    readonly request: ContentRequest,
    readonly progress: TransferProgress,
    private readonly parts: TransferParts,
  ) {
    this.#blocked = new BlockedBytes(request.id, parts.forbidden)
    this.#draft = new TransferDraft(parts.store)
    this.#judge = new TransferJudge(request, parts)
    this.announcement = new Promise((resolve) => {
      this.#resolve = resolve
    })
  }

  /** What readers got so far: size, type, place. Undefined before the first of them can begin. */
  get announced(): Announcement | undefined {
    return this.#announced
  }

  /**
   * Brings the payload from the store, else from the sources in order. The next source is used only while no reader has size or
   * bytes. Resolves when only the readers are left to be served; never rejects.
   */
  async run(): Promise<void> {
    try {
      if (await this.#fromStore()) return
      const refusal = await this.#fromSources()
      if (refusal !== undefined) {
        this.parts.meters.refused(refusal.refused)
        this.#fail(refusal)
      }
    } catch (error) {
      const { log } = this.parts
      if (isBug(error))
        log.error({ err: error, id: this.request.id }, 'a fetch ended because of a bug in this program')
      else log.error({ err: error, id: this.request.id }, 'a fetch ended because the disk failed')
      // A whole payload was judged before it was announced, so a later failure does not concern its readers.
      if (this.progress.state !== 'whole') {
        this.#fail(isBug(error) ? defect() : refuse('busy', 'self', 'the disk failed'))
      }
    }
  }

  /** All readers left: goes on where little is missing, else stops. True: it goes on. */
  abandon(): boolean {
    if (this.progress.state !== 'growing') return true
    const missing = this.#fileBytes - this.progress.readable
    const { finishBytes, finishShare, digestBufferMaxBytes } = this.parts.options
    const near = missing <= finishBytes || this.progress.readable >= this.#fileBytes * finishShare
    if (near || this.#fileBytes <= digestBufferMaxBytes) return true
    this.stop()
    return false
  }

  /** Stops the fetch; readers see a broken source. */
  stop(): void {
    this.#stopped = true
    this.#attempt?.abort()
  }

  /** Gives the file back, when the run is over and the last reader left. */
  async close(): Promise<void> {
    await this.#handle?.close()
    await this.#draft.close()
  }

  /** The blob on disk, where the catalog says there is one. */
  async #fromStore(): Promise<boolean> {
    const uncommitted = this.parts.blobCache.uncommitted.get(this.request.id)
    if (uncommitted !== undefined && !this.#blocked.drops(uncommitted.attributes)) {
      this.#fileBytes = uncommitted.sizeBytes
      this.progress.move(uncommitted.sizeBytes, 'whole')
      this.#announce(uncommitted)
      return true
    }
    const { id, absentAt } = this.request
    this.#known = absentAt === this.parts.catalog.generation(id) ? undefined : this.#knownNow()
    this.#isKnownRead = true
    const isHere = this.#known?.digest !== undefined && !this.#blocked.needsPlace
    const local = isHere ? await openLocal(this.#known, this.parts) : undefined
    if (local === undefined) return false
    const { known, handle, offset } = local
    this.#handle = handle
    this.#fileBytes = known.size
    this.progress.move(known.size, 'whole')
    this.#announce({
      attributes: known,
      path: openablePath(handle),
      offset,
      base: 0,
      sizeBytes: known.size,
      source: 'cache',
      trusted: known.trusted,
    })
    return true
  }

  #knownNow(): Attributes | undefined {
    return this.#blocked.without(this.parts.catalog.attributes(this.request.id))
  }

  async #fromSources(): Promise<Refusal | undefined> {
    let refusal: Refusal | undefined = unknownEverywhere()
    try {
      refusal = await this.#trySources()
    } finally {
      const isKept = refusal === undefined && this.request.window === undefined
      if (!isKept) await this.#draft.discard()
    }
    return refusal
  }

  /** Tries sources until one brought everything: `parts.source` are all in their order, `avoid` leaves out what has failed. */
  async #trySources(): Promise<Refusal | undefined> {
    const avoid = this.parts.avoided.of(this.request.id)
    // Sources that are skipped have not denied the id, so the refusal is not `unknown`.
    let refusal = this.#blocked.needsPlace ? forbiddenBytes() : undefined
    if (avoid.size > 0) refusal ??= refuse('forged', 'upstream', 'a source sent wrong bytes before')
    for (;;) {
      // A catalog read costs as much as the rest of this step. It is repeated only after a source has failed.
      const known = this.#isKnownRead ? this.#known : this.#knownNow()
      this.#isKnownRead = false
      const wanted = wantedOf(this.request, avoid, known, this.#blocked.needsPlace)
      const attempt = new LazySignal()
      this.#attempt = attempt
      if (this.#stopped) attempt.abort()
      const found = await this.parts.source.open(wanted, attempt)
      if (isRefusal(found)) return weightier(refusal, found)
      if (this.#blocked.has(found)) {
        attempt.abort()
        void cancelBody(found.body)
        refusal = weightier(refusal, forbiddenBytes())
        // A stranger may state of anything that it lies in something blocked.
        if (found.trusted || found.proven || avoid.has(found.origin)) return refusal
        avoid.add(found.origin)
        continue
      }
      let broken: Refusal | undefined = unknownEverywhere()
      try {
        broken = await this.#take(found, this.#resumed(found), known)
      } finally {
        // A body that was read to its end needs no abort.
        if (broken !== undefined) attempt.abort()
      }
      if (broken === undefined) {
        this.parts.meters.brought(found.name, this.#fileBytes)
        return undefined
      }
      // No other source changes that.
      if (broken.refused === 'blocked' || broken.fault === 'self') return broken
      refusal = weightier(refusal, broken)
      // All readers left: the source is not at fault.
      if (this.#stopped) return refusal
      this.parts.meters.broke(found.name)
      // Nodes behind a proving source are many, and change by themselves.
      if (broken.refused === 'forged' && !found.proven) this.parts.avoided.add(this.request.id, found.origin)
      this.parts.log.warn(
        { id: this.request.id, source: found.name, origin: found.origin, ...broken },
        'a source sent wrong or incomplete bytes',
      )
      if (this.#announced !== undefined || avoid.has(found.origin)) return refusal
      avoid.add(found.origin)
      await this.#draft.empty()
      this.progress.move(0, 'growing')
    }
  }

  /** The body of what was found, going on by a window where it breaks. A small one is had anew from another source. */
  #resumed(found: Found): Found['body'] {
    const { options, meters } = this.parts
    const window = windowIn(this.request.window ?? { start: 0, end: found.sizeBytes - 1 }, found.sizeBytes)
    if (isRefusal(window) || found.again === undefined) return found.body
    const isBuffered = window.end - window.start < options.digestBufferMaxBytes
    return isBuffered ? found.body : resuming(found, window, () => meters.resumed())
  }

  /**
   * Takes one source's bytes, in one of three ways. A small payload is gathered in memory (`#gather`). A larger one goes into a
   * file; above `digestBufferMaxBytes` its readers begin at once, and below when it is judged. So does a window of any size.
   * Undefined: all is well and kept. A refusal: nothing of it may be believed.
   */
  async #take(
    found: Found,
    body: Found['body'],
    known: Attributes | undefined,
  ): Promise<Refusal | undefined> {
    const window = this.#windowOf(found, known)
    if (isRefusal(window)) {
      void cancelBody(body)
      return window
    }
    const base = window?.start ?? 0
    const fileBytes = window === undefined ? found.sizeBytes : window.end - window.start + 1
    this.#fileBytes = fileBytes
    const target: TransferTarget = { found, body, known, base, fileBytes }
    const { small, options } = this.parts
    const isShownAtEnd = window === undefined && fileBytes <= options.digestBufferMaxBytes
    const isSmall = isShownAtEnd && small !== undefined && fileBytes <= small.payloadMaxBytes
    if (isSmall && Gathering.hasRoom(fileBytes)) return this.#gather(target, small)
    const draft = await this.#draftFor(target)
    if (isRefusal(draft)) {
      void cancelBody(body)
      return draft
    }
    if (!isShownAtEnd && !this.#isJudgedAtEnd(target)) this.#announceEarly(target, draft)
    return this.#write(target, draft)
  }

  /**
   * The wanted window in what was found; undefined: all of it. The digest that a trusted source declares counts before a byte is
   * read. Bytes of others are hashed first.
   */
  #windowOf(found: Found, known: Attributes | undefined): Window | Refusal | undefined {
    const { declaredDigest, trusted } = found
    const isForbidden = declaredDigest !== undefined && trusted && this.#judge.forbids(declaredDigest)
    return isForbidden ? forbiddenBytes() : judgeSize(found, known, this.request.window)
  }

  /** A file for the bytes. An unproven size that does not fit is refused as the source's fault while the disk has room. */
  async #draftFor({ found, known, fileBytes }: TransferTarget): Promise<BlobDraft | Refusal> {
    const isBelieved = found.proven || known?.size === found.sizeBytes
    const draft = await this.#draft.take(fileBytes, isBelieved)
    const isOurs = isBelieved || this.parts.store.freeBytes().disk < plentyBytes
    return isRefusal(draft) && !isOurs ? tooMuchAnnounced() : draft
  }

  /** Whether no reader may get a byte before all bytes are here and were judged. */
  #isJudgedAtEnd({ found, fileBytes }: TransferTarget): boolean {
    const isWhole = this.request.window === undefined
    return found.isJudgedAtEnd === true || (isWhole && this.#judge.isSuspect(fileBytes))
  }

  /** Lets readers begin before the bytes are here. The digest on record may not be theirs: it is announced at the end. */
  #announceEarly(target: TransferTarget, draft: BlobDraft): void {
    const { found, known } = target
    const { digest: _unproven, ...rest } = attributesFound(this.request.id, found, known, undefined)
    const attributes = { ...rest, verified: false }
    this.#announce(announcementOf(target, attributes, placeIn(draft)))
    // The place of an item is recorded even where no reader takes all of it.
    if (found.proven) this.parts.keeper.tell({ kind: 'learn', attributes: [attributes] })
  }

  /** Takes the bytes into the file. A window ends there; a whole payload is judged, announced, and kept. */
  async #write(target: TransferTarget, draft: BlobDraft): Promise<Refusal | undefined> {
    const { found, fileBytes } = target
    const isHashed = this.request.window === undefined
    const shownMax = this.#judge.shownMax(fileBytes)
    const onWritten = (written: number): void => this.progress.move(Math.min(written, shownMax), 'growing')
    const writer = new FileWriter(draft.handle, { isHashed, isLasting: found.isLasting === true, onWritten })
    // A write that is still under way must not meet the bytes of the next source.
    const broken = await this.#pour(target, writer).finally(() => writer.rest())
    if (broken !== undefined) return broken
    const digest = writer.digest()
    const isWritten = await writer.settled(isHashed ? digest : undefined, this.parts.log)
    if (isRefusal(isWritten)) return isWritten
    if (!isHashed) {
      this.progress.move(fileBytes, 'whole')
      return undefined
    }
    const whole = await this.#judge.judge(target, digest)
    if (isRefusal(whole)) return whole
    this.#announceWhole(whole, placeIn(draft))
    if (isWritten && draft.isInMemory !== true) await this.parts.blobCache.keep(draft, this.#keptOf(whole))
    else await this.parts.store.discard(draft)
    return undefined
  }

  /** Takes a small payload into memory, and into a segment when it is judged. Its readers begin then, and read it there. */
  async #gather(target: TransferTarget, small: SmallBlobs): Promise<Refusal | undefined> {
    const gathering = new Gathering(target.fileBytes, target.found.isLasting)
    try {
      const broken = await (gathering.fill(target) ?? this.#pour(target, gathering))
      if (broken !== undefined) return broken
      const digest = gathering.digest()
      const whole = await this.#judge.judge(target, digest)
      if (isRefusal(whole)) return whole
      const part = small.put(digest, gathering.parts)
      if (!isRefusal(part)) {
        const waiting = this.parts.blobCache.keepSmall(this.#keptOf(whole), this.#announceWhole(whole, part))
        if (waiting !== undefined) await waiting
        return undefined
      }
      // It is not kept; whoever requested it reads it from a file without a name.
      const { store } = this.parts
      await this.#draft.drop()
      const aside = await writeAside(await store.draft(), gathering.parts, store)
      const draft = this.#draft.put(aside, target.fileBytes)
      if (isRefusal(draft)) return draft
      this.#announceWhole(whole, placeIn(draft))
      await store.discard(draft)
      return undefined
    } finally {
      gathering.close()
    }
  }

  /** Announces the whole payload to its readers. */
  #announceWhole(whole: WholeTransfer, where: TransferPlace): Announcement {
    this.progress.move(whole.fileBytes, 'whole')
    const announcement = announcementOf(whole, whole.attributes, where)
    this.#announce(announcement)
    return announcement
  }

  #keptOf({ found, attributes, digest }: WholeTransfer): Kept {
    const { hints, name: source } = found
    const { hints: clientHints, named = false } = this.request
    return { attributes, digest, hints, clientHints, named, source }
  }

  /** Writes the body. */
  async #pour(
    { body, fileBytes }: TransferTarget,
    writer: FileWriter | Gathering,
  ): Promise<Refusal | undefined> {
    for await (const piece of body) {
      if (isRefusal(piece)) return piece
      if (this.#stopped) return refuse('late', 'client', 'all readers left')
      if (writer.taken + piece.length > fileBytes)
        return refuse('upstream', 'upstream', 'the body is too long')
      const writing = writer.write(piece)
      if (writing !== undefined) await writing
    }
    if (writer.taken < fileBytes) return refuse('upstream', 'upstream', 'the body ended early')
    await writer.drain()
    return undefined
  }

  #announce(announcement: Announcement): void {
    this.#announced = announcement
    this.#resolve(announcement)
  }

  #fail(refusal: Refusal): void {
    this.progress.move(0, 'broken')
    this.#resolve(refusal)
  }
}
