import type { Log } from '../actor/log.js'
import type { Id } from '../format/id.js'
import { isRefusal } from '../format/refusal.js'
import type { Exchange } from '../serving/request-exchange.js'
import { SegmentContent } from '../store/segments/segment-reader.js'
import { segmentDefaults } from '../store/segments/segment-store.js'
import type { SoundFiles } from '../store/sound-files.js'
import type { StoredContent } from '../store/stored-content.js'
import type { Entries } from './entries.js'
import type { Entry } from './entry.js'
import type { Blobs, Transfers } from './gateway-parts.js'
import type { Guard } from './guard.js'
import type { ItemWindow } from './item-window.js'
import { ItemWindows, type WindowParts } from './item-windows.js'
import { enter } from './steps.js'

/** Where the bytes of an id are, as far as is known on this machine without waiting. */
export type Located =
  /** On disk; `sound` where the file was checked. The exchange closes the content (`closeOpened`), or `send` does. */
  | {
      readonly at: 'store'
      readonly entry: Entry
      readonly content: StoredContent | ItemWindow
      readonly sound: boolean
    }
  /** On disk, but to be checked first: `check`, then locate again. Nothing is held. */
  | { readonly at: 'unchecked'; readonly entry: Entry }
  /** The catalog knows of it; the bytes are elsewhere. */
  | { readonly at: 'catalog'; readonly entry: Entry }
  /** `absentAt`: the generation of the id at which the catalog knew nothing of it. Absent: it knows a copy that is blocked. */
  | { readonly at: 'nowhere'; readonly absentAt?: number }

/** What becomes of a file that was not compared with its digest since the start: the caller waits for that, or takes it so. */
export type OnUnchecked = 'wait' | 'take'

/** Finds ids among prepared entries, then in the catalog. It calls no source and never waits. */
export class Locator {
  #isUnreadableLogged = false
  readonly #windows: ItemWindows

  /** `learning`: receives the digests of items in bundles. */
  constructor(
    private readonly entries: Entries,
    private readonly blobs: Blobs,
    private readonly transfers: Transfers,
    private readonly sound: SoundFiles,
    private readonly log: Log,
    private readonly checkWaitBytes: number,
    learning: Pick<WindowParts, 'keeper' | 'clock' | 'catalog'>,
    private readonly guard?: Pick<Guard, 'hasBlockedCopy'>,
  ) {
    this.#windows = new ItemWindows({
      ...learning,
      entries,
      transfers: this.transfers,
      checkWaitBytes,
      open: (entry) => this.#readable(entry),
      isSound: (entry, content) => entry.isSound(content, sound),
      check: (entry) => this.check(entry),
    })
  }

  /** Reports what was learned last. */
  close(): void {
    this.#windows.close()
  }

  #readable(entry: Entry): StoredContent | undefined {
    const content = entry.blobPath === undefined ? undefined : this.#open(entry, entry.blobPath)
    return content === 'unreadable' ? undefined : content
  }

  /**
   * Step `locate`. The exchange holds the content that is open (`exchange.opened`). `onUnchecked`: `take` where the caller has
   * waited for a check already.
   */
  locate(exchange: Exchange, id: Id, onUnchecked: OnUnchecked = 'wait'): Located {
    enter(exchange, 'locate')
    const found = this.#find(id, onUnchecked)
    if (found.at === 'store') exchange.opened = found.content
    return found
  }

  #find(id: Id, onUnchecked: OnUnchecked): Located {
    const entry = this.entries.get(id)
    if (entry === undefined) return { at: 'nowhere', absentAt: this.entries.absentAt }
    // A copy that must not be served is none: the item is looked for elsewhere.
    if (this.guard?.hasBlockedCopy(entry) === true) return { at: 'nowhere' }
    if (entry.blobPath === undefined) return this.#inBundle(entry, onUnchecked)
    const content = this.#open(entry, entry.blobPath)
    // The fetcher tries to open it again, and fetches from the sources where it cannot either.
    if (content === 'unreadable') return { at: 'catalog', entry }
    if (content === undefined) {
      // The file was removed by hand, or after the catalog was read.
      entry.blobPath = undefined
      return { at: 'catalog', entry }
    }
    if (entry.isSound(content, this.sound)) return { at: 'store', entry, content, sound: true }
    if (
      content.sizeBytes !== entry.attributes.size ||
      (onUnchecked === 'wait' && content.sizeBytes <= this.checkWaitBytes)
    ) {
      content.close()
      return { at: 'unchecked', entry }
    }
    void this.check(entry)
    return { at: 'store', entry, content, sound: false }
  }

  /** Without bytes of its own in the store: they may lie in a bundle. */
  #inBundle(entry: Entry, onUnchecked: OnUnchecked): Located {
    const found = this.#windows.open(entry)
    if (found === undefined || (found === 'unchecked' && onUnchecked === 'take'))
      return { at: 'catalog', entry }
    return found === 'unchecked' ? { at: 'unchecked', entry } : { at: 'store', ...found, sound: true }
  }

  /**
   * A file that cannot be opened (no free descriptor, a failing disk) is no bug of a request: it is logged once, until
   * opening works again.
   */
  #open(entry: Entry, path: string): StoredContent | undefined | 'unreadable' {
    try {
      const content = this.#openSmall(entry) ?? this.blobs.open(path, entry.attributes.size, entry.isPopular)
      this.#isUnreadableLogged = false
      return content
    } catch (error) {
      if (!this.#isUnreadableLogged)
        this.log.error({ err: error, path }, 'a file of the cache cannot be opened')
      this.#isUnreadableLogged = true
      return 'unreadable'
    }
  }

  /** The place of a payload stays valid until the commit number of the segments changes. */
  #openSmall(entry: Entry): SegmentContent | undefined {
    const { segments } = this.blobs
    const { digest, size } = entry.attributes
    if (segments === undefined || digest === undefined || size > segmentDefaults.payloadMaxBytes)
      return undefined
    // The commit number is read first: a change between the two reads is then noticed at the next request.
    const { commits, withdrawals } = segments.marks
    if (entry.segmentPlaceAt !== commits) {
      entry.segmentWithdrawals = withdrawals
      entry.segmentPlace = segments.find(digest)
      entry.segmentPlaceAt = commits
    }
    return entry.segmentPlace === undefined ? undefined : segments.open(entry.segmentPlace, digest)
  }

  /**
   * Has the blob checked, once for all who wait. Resolves false where its bytes do not have its digest: it is removed then,
   * and the catalog may know less than before. An unanswered check leaves the blob unchecked and resolves true. Never
   * rejects.
   */
  async check(entry: Entry): Promise<boolean> {
    const { digest, id } = entry.attributes
    if (entry.blobPath === undefined) await this.#windows.check(entry)
    const content = this.#readable(entry)
    if (digest === undefined || content === undefined) return true
    if (content instanceof SegmentContent) {
      const isSound = await content.verify()
      content.close()
      // A false one is removed by the writer of the segments.
      if (isSound && content.sizeBytes === entry.attributes.size) return true
    }
    // The file's state is read first: a file that replaces it during the check was not checked.
    const stamp = content instanceof SegmentContent ? undefined : content.stamp
    const { sizeBytes } = content
    if (stamp !== undefined) content.close()
    entry.checking ??= this.transfers.check(id, digest)
    const outcome = await entry.checking
    entry.checking = undefined
    if (isRefusal(outcome)) {
      this.log.warn({ data: id, reason: outcome.message }, 'a blob could not be checked')
      return sizeBytes === entry.attributes.size
    }
    if (outcome && sizeBytes === entry.attributes.size) {
      if (stamp !== undefined) {
        entry.sound = stamp
        this.sound.add(digest, sizeBytes, stamp)
      }
      return true
    }
    // Small payloads lie in a segment: a path below blobs/ would name a file that is not there.
    const where = stamp === undefined ? { segment: entry.segmentPlace?.segment } : { path: entry.blobPath }
    const details = { data: id, digest: Buffer.from(digest).toString('base64url'), ...where }
    if (outcome)
      this.log.error(details, 'a blob does not have the size on record; its content is fetched again')
    // It was evicted, or the thread that checks it has logged the fault.
    else this.log.debug(details, 'a blob is gone or damaged; its content is fetched again')
    this.entries.forget(id)
    return false
  }
}
