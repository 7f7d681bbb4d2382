import { open } from 'node:fs/promises'
import { setImmediate as turn } from 'node:timers/promises'
import { type Clock, pause } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import { type Id, idBytes } from '../../format/id.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { isListed } from '../../proof/owner-address.js'
import { codeOf } from '../../store/blobs.js'
import { diskRefusal, isDiskError } from '../../store/disk-error.js'
import { writePatiently } from '../../store/patient-write.js'
import type { DurableLog } from '../../store/segments/durable-log.js'
import { logFileName } from '../../store/segments/log-file.js'
import type { Sales } from '../charging/sales.js'
import { type AcceptedItem, isGone, type Uploads } from '../records/uploads.js'
import { insideIds } from './inside-ids.js'

/** Items in one bundle, at all levels together. A bundle with more is refused. */
const insideMax = 1_000_000
/** Rows of one transaction; a bundle with no more items is read once. */
const rowsMax = 2048
const pageRows = 1000
const againMs = 2000
/** When rows are looked for that are not needed any more: after a start, between two looks, between two pages of one. */
const [sweepFirstMs, sweepEachMs, pageEachMs] = [60_000, 6 * 3_600_000, 250]
/** Since a release that notes items, there is this word: bundles of older ones were read at its first start. */
const word = 'noted-since'
const tryAgain = 'the log cannot be read: it is tried again'

export interface BundleScanParts {
  readonly uploads: Uploads
  readonly sales: Pick<Sales, 'open' | 'openOf'>
  readonly itemLog: Pick<DurableLog, 'folder' | 'withdraw'>
  readonly clock: Pick<Clock, 'now' | 'after'>
  readonly logger: Pick<Log, 'error' | 'info' | 'warn'>
  readonly closing: AbortSignal
  /** Whether the index of this program has the item in a block. Absent: there is no index. */
  readonly isInBlock?: (id: Id) => boolean
  /** Bundles with an item of one of them are refused (`isListed`). May change at any time. */
  readonly blockedOwners: ReadonlySet<string>
  /** Items inside of a bundle at most; set by tests, usually `insideMax`. */
  readonly insideMax?: number
}

/** A bundle whose bytes are in the log. */
type LoggedBundle = Pick<AcceptedItem, 'id' | 'headerSize' | 'place'>

/**
 * Notes the ids of all items in a bundle before it is accepted, whatever its size and at every level: whoever posts one of them
 * alone must not make its owner pay again. That does not wait for the bundle to be opened (`InnerItems`), which happens later, or
 * never where it is large. Bundles that were accepted without this, by a start after a kill, a takeover or an older release, are
 * read in the background. Until then it is not certain what lies in a bundle (`isBehind`).
 *
 * Nobody checks here that a bundle has the payload of an item, or that its signature is valid: a stranger can copy the header of
 * one. So a row can keep an item from being charged to its owner, because it is refused then, and can never be a reason to give
 * money back. It keeps nobody from uploading an item that is free, or that he pays for himself.
 */
export class BundleScan {
  /** Bundles that are not accepted yet: their rows are still needed. */
  readonly #coming = new Set<Id>()
  /** Bundles that are not accepted yet, and some of whose rows others have overwritten. */
  readonly #overwritten = new Set<Id>()
  /** Bundles that a start has found stored and not paid for yet. */
  #unsold: readonly Id[]
  /** What the last look has found: bundles that are not known, and those that were coming. */
  #unknown: ReadonlySet<Id> = new Set()
  #came: readonly Id[] = []
  #running: Promise<unknown> = Promise.resolve()
  #wake: (() => void) | undefined
  #isWhole: boolean

  constructor(private readonly parts: BundleScanParts) {
    this.#isWhole = parts.uploads.value(word) !== undefined
    this.#unsold = parts.sales.open().flatMap(({ item }) => (item?.isBundle === true ? [item.id] : []))
    parts.closing.addEventListener('abort', () => this.#wake?.())
  }

  /** Reads bundles that were not noted. */
  start(): void {
    this.#running = Promise.all([this.#catchUp(), this.#sweepAll()])
  }

  /** A bundle waits. */
  wake(): void {
    this.#wake?.()
  }

  /** After `closing`: resolves when nothing is read or written any more. */
  async stopped(): Promise<void> {
    await this.#running
  }

  /** What lies in accepted bundles is not all noted. */
  get isBehind(): boolean {
    return !this.#isWhole || this.#unsold.length > 0 || this.parts.uploads.scanned.isBehind
  }

  /** The accepted bundle in which an item lies, as far as its header states. */
  bundleOf(id: Id): Id | undefined {
    return this.parts.uploads.scannedBundleOf(id)?.id
  }

  /**
   * Reads a bundle that is about to be accepted, or to be paid for. Resolves with what writes the ids of its items, to be called
   * in the transaction that accepts it. A refusal: it has too many items, bundles too deep in it, or an item of a blocked owner
   * (`blocked`), or the disk fails; the log has it no more. `metaBytes`: size of its record in the log.
   */
  async scan(bundle: LoggedBundle, metaBytes: number): Promise<(() => void) | Refusal> {
    this.#coming.add(bundle.id)
    const rest = await this.#tried(bundle)
    if (isRefusal(rest)) {
      this.#forget(bundle.id)
      this.parts.itemLog.withdraw(bundle.place, metaBytes)
      return rest
    }
    return () => {
      this.#coming.delete(bundle.id)
      this.#put(rest, bundle.id)
    }
  }

  /** Only inside the transaction that accepts a bundle. */
  accepted(bundle: Id): void {
    if (!this.#overwritten.delete(bundle)) return
    this.parts.uploads.scanned.wait(bundle)
    this.wake()
  }

  /** A bundle that was noted and is not accepted: its rows are removed. Its bytes must be in the log until this resolves. */
  async drop(bundle: LoggedBundle): Promise<void> {
    this.#forget(bundle.id)
    const { uploads, logger } = this.parts
    const removed = await this.#safely(async () => {
      for await (const { ids } of this.idsIn(bundle)) {
        uploads.environment.write(() => uploads.scanned.removeOf(ids, bundle.id))
        await turn()
      }
      return []
    })
    if (isRefusal(removed))
      logger.warn(
        { id: bundle.id, why: removed.message },
        'rows of a refused bundle stay until they are swept',
      )
  }

  #forget(bundle: Id): void {
    this.#coming.delete(bundle)
    this.#overwritten.delete(bundle)
  }

  /** The ids that are not written yet. Nothing is written of a bundle that is refused for what lies in it. */
  async #tried(bundle: LoggedBundle): Promise<readonly Uint8Array[] | Refusal> {
    const ids = await this.#safely(() => this.#looked(bundle))
    if (ids !== 'many') return ids
    const rest = await this.#safely(() => this.#written(bundle))
    if (isRefusal(rest)) await this.drop(bundle)
    return rest
  }

  /** All ids, where one transaction can write them. */
  async #looked(bundle: LoggedBundle): Promise<Uint8Array[] | 'many' | Refusal> {
    const max = this.parts.insideMax ?? insideMax
    const ids: Uint8Array[] = []
    let count = 0
    const steps = this.idsIn(bundle)
    for (;;) {
      const { done, value } = await steps.next()
      if (done === true) {
        if (value) return tooDeep
        return count > rowsMax ? 'many' : ids
      }
      count += value.entries
      if (value.hasBlocked) {
        await steps.return(false)
        return blockedOwner
      }
      if (count > max) {
        await steps.return(false)
        return refuse('malformed', 'client', `the bundle has more than ${max} items, at all levels together`)
      }
      if (count <= rowsMax) ids.push(...value.ids)
      await turn()
    }
  }

  /** Writes all ids but the last ones. */
  async #written(bundle: LoggedBundle): Promise<Uint8Array[]> {
    let rest: Uint8Array[] = []
    for await (const { ids } of this.idsIn(bundle)) {
      rest.push(...ids)
      if (rest.length < rowsMax) continue
      const due = rest
      this.parts.uploads.environment.write(() => this.#put(due, bundle.id))
      rest = []
      await turn()
    }
    return rest
  }

  async #safely<T>(act: () => Promise<T>): Promise<T | Refusal> {
    try {
      return await act()
    } catch (error) {
      if (isDiskError(error)) return diskRefusal(error)
      const code = codeOf(error)
      if (code === undefined) throw error
      return refuse('busy', 'self', `the bundle cannot be read again: ${code}`)
    }
  }

  #put(ids: readonly Uint8Array[], bundle: Id): void {
    const { uploads } = this.parts
    uploads.scanned.put(ids, bundle, (other) => other === bundle || this.#isKnown(other))
  }

  /** A bundle that is not accepted yet may never be: others overwrite its rows, and it is read again when it is accepted. */
  #isKnown(bundle: Id): boolean {
    const { uploads } = this.parts
    const item = uploads.find(bundle)
    if (item !== undefined && !isGone(item)) return true
    if (this.#isPending(bundle)) this.#overwritten.add(bundle)
    return false
  }

  #isPending(bundle: Id): boolean {
    return this.#coming.has(bundle) || this.parts.sales.openOf(bundle) !== undefined
  }

  /** The ids of all items in a bundle, at every level, by steps. */
  async *idsIn({ headerSize, place }: LoggedBundle): ReturnType<typeof insideIds> {
    const { itemLog, blockedOwners } = this.parts
    const handle = await open(`${itemLog.folder}/${logFileName(place.file)}`, 'r')
    try {
      const bytes = { start: place.offset + headerSize, end: place.offset + place.sizeBytes }
      const readAt = async (buffer: Uint8Array, at: number): Promise<number> =>
        (await handle.read(buffer, 0, buffer.length, at)).bytesRead
      return yield* insideIds(readAt, bytes, ({ signatureType, owner }) =>
        isListed(blockedOwners, signatureType, owner),
      )
    } finally {
      await handle.close()
    }
  }

  async #catchUp(): Promise<void> {
    const { uploads, closing } = this.parts
    if (!(await this.#findUnsold())) return
    if (!this.#isWhole) await this.#findOld()
    while (!closing.aborted) {
      const [id] = uploads.scanned.waiting(1)
      if (id !== undefined) await this.#scanLate(id)
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
    }
  }

  /** A kill may have come before they were noted, or others may have overwritten some of their rows. False: the program ends. */
  async #findUnsold(): Promise<boolean> {
    const { uploads, closing, logger } = this.parts
    const write = (): void =>
      uploads.environment.write(() => {
        for (const id of this.#unsold) uploads.scanned.wait(id)
      })
    if (this.#unsold.length > 0 && !(await writePatiently(write, closing, logger))) return false
    this.#unsold = []
    return true
  }

  /** Bundles that an older release has accepted, and whose bytes are still here. */
  async #findOld(): Promise<void> {
    const { uploads, closing, logger } = this.parts
    for (let after: Id | undefined; !closing.aborted; ) {
      const { bundles, last } = uploads.keptBundles(after, pageRows)
      const write = (): void =>
        uploads.environment.write(() => {
          for (const id of bundles) uploads.scanned.wait(id)
          if (last === undefined) uploads.putValue(word, '1')
        })
      if (!(await writePatiently(write, closing, logger))) return
      this.#isWhole = last === undefined
      if (last === undefined) return
      after = last
      await turn()
    }
  }

  /** One that is accepted already, so that it cannot be refused, or that is being paid for. */
  async #scanLate(id: Id): Promise<void> {
    const { uploads, sales, closing, logger } = this.parts
    const item = uploads.find(id) ?? sales.openOf(id)?.item
    const isHere = item !== undefined && item.released !== true
    const why = isHere ? await this.#scannedLate(item) : undefined
    if (why !== undefined) logger.warn({ id, why }, 'the items in an accepted bundle could not all be noted')
    if (why === tryAgain) await pause(againMs, closing)
    if (why === tryAgain || closing.aborted) return
    await writePatiently(() => uploads.environment.write(() => uploads.scanned.scanned(id)), closing, logger)
  }

  async #scannedLate(item: AcceptedItem): Promise<string | undefined> {
    const { uploads, closing, logger } = this.parts
    try {
      const steps = this.idsIn(item)
      for (;;) {
        const { done, value } = await steps.next()
        if (done === true) return value ? tooDeep.message : undefined
        const write = (): void => uploads.environment.write(() => this.#put(value.ids, item.id))
        if (!(await writePatiently(write, closing, logger))) return undefined
        await turn()
      }
    } catch (error) {
      const code = codeOf(error)
      if (code === undefined) throw error
      return code === 'ENOENT' ? 'its bytes are gone' : tryAgain
    }
  }

  async #sweepAll(): Promise<void> {
    const { closing } = this.parts
    // Not while a start has other work.
    await pause(sweepFirstMs, closing)
    while (!closing.aborted) {
      await this.sweep()
      await pause(sweepEachMs, closing)
    }
  }

  /**
   * Removes rows that are not needed any more: of bundles that are unknown at two looks in a row, that a sandbox has not any
   * more, or that are in a block, where the item is found in another way.
   */
  async sweep(): Promise<void> {
    const { uploads, closing, logger } = this.parts
    for (const id of this.#came) this.#coming.delete(id)
    this.#came = [...this.#coming]
    for (const id of this.#overwritten) if (!this.#isPending(id)) this.#overwritten.delete(id)
    const unknown = new Set<Id>()
    for (let after: Uint8Array | undefined; !closing.aborted; ) {
      const rows = uploads.scanned.behind(after, pageRows)
      const unneeded = rows.filter(({ id, bundle }) => this.#isUnneeded(id, bundle, unknown))
      const write = (): void =>
        uploads.environment.write(() => {
          for (const { id } of unneeded) uploads.scanned.remove(id)
        })
      if (unneeded.length > 0 && !(await writePatiently(write, closing, logger))) return
      const last = rows.at(-1)
      if (last === undefined || rows.length < pageRows) break
      after = idBytes(last.id)
      await pause(pageEachMs, closing)
    }
    this.#unknown = unknown
  }

  #isUnneeded(id: Id, bundle: Id, unknown: Set<Id>): boolean {
    const { uploads, isInBlock } = this.parts
    const item = uploads.find(bundle)
    if (item === undefined) {
      unknown.add(bundle)
      return this.#unknown.has(bundle) && !this.#isPending(bundle)
    }
    if (isGone(item)) return true
    return item.permanent !== undefined && (uploads.around(id) !== undefined || isInBlock?.(id) === true)
  }
}

const blockedOwner = refuse('blocked', 'client', 'an item in the bundle has an owner who is blocked here')
const tooDeep = refuse(
  'malformed',
  'client',
  'the bundle has bundles in it that are more than 10 levels deep',
)
