import { open } from 'node:fs/promises'
import { type Clock, pause } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import { type Id, idBytes, idOfBytes } from '../../format/id.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { codeOf } from '../../store/blobs.js'
import { diskRefusal, isDiskError } from '../../store/disk-error.js'
import { writePatiently } from '../../store/patient-write.js'
import type { DurableLog } from '../../store/segments/durable-log.js'
import { logFileName } from '../../store/segments/log-file.js'
import { type AcceptedItem, isGone, type Uploads } from '../records/uploads.js'
import { insideIds } from './inside-ids.js'

/** Items in one bundle, at all levels together. A bundle with more is refused. */
const insideMax = 1_000_000
/** Rows of one transaction. */
const rowsMax = 2048
const pageRows = 1000
const againMs = 2000
/** When rows are looked for that are not needed any more: after a start, between two looks, between two pages of one. */
const [sweepFirstMs, sweepEachMs, pageEachMs] = [60_000, 6 * 3_600_000, 250]
/** Since a release that notes items, there is this word: bundles of older ones were read at its first start. */
const word = 'noted-since'
const tryAgain = 'the log cannot be read: it is tried again'

export interface NotingParts {
  readonly uploads: Uploads
  readonly log: Pick<DurableLog, 'folder' | 'withdraw'>
  readonly clock: Pick<Clock, 'now' | 'after'>
  readonly logger: Pick<Log, 'error' | 'info' | 'warn'>
  readonly closing: AbortSignal
  /** Whether the index of this program has the item in a block. Absent: there is no index. */
  readonly isInBlock?: (id: Id) => boolean
  /** For tests; usually `insideMax`. */
  readonly insideMax?: number
}

/** Gives back what was charged for an item, once, however often it is called. */
export type PayBack = (id: Id) => Promise<object | Refusal>

/** A bundle whose bytes are in the log. */
type LoggedBundle = Pick<AcceptedItem, 'id' | 'headerSize' | 'place'>

/**
 * Notes the ids of all items in a bundle before it is accepted, whatever its size and at every level: whoever posts one of them
 * alone must not make its owner pay again. That does not wait for the bundle to be opened (`InnerItems`), which happens later, or
 * never where it is large. Bundles that were accepted without this, by a start after a kill, a takeover or an older release, are
 * read in the background. Until then it is not certain what lies in a bundle (`isBehind`).
 */
export class Noting {
  /** Bundles that are not accepted yet: their rows are still needed. */
  readonly #coming = new Set<Id>()
  /** What the last look has found: bundles that are not known, and those that were coming. */
  #unknown: ReadonlySet<Id> = new Set()
  #came: readonly Id[] = []
  #running: Promise<unknown> = Promise.resolve()
  #wake: (() => void) | undefined
  #isWhole: boolean

  constructor(private readonly parts: NotingParts) {
    this.#isWhole = parts.uploads.word(word) !== undefined
    parts.closing.addEventListener('abort', () => this.#wake?.())
  }

  /** Reads bundles that were not noted. `payBack`: absent where nobody pays. */
  start(payBack?: PayBack): void {
    this.#running = Promise.all([this.#catchUp(payBack), this.#sweepAll()])
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
    return !this.#isWhole || this.parts.uploads.noted.isBehind
  }

  /**
   * Of a bundle that is about to be accepted. Gives what the transaction that accepts it must write. A refusal: it has too many
   * items, or bundles too deep in it, or the disk fails; the log has it no more. `metaBytes`: of its record in the log.
   */
  async note(bundle: LoggedBundle, metaBytes: number): Promise<(() => void) | Refusal> {
    this.#coming.add(bundle.id)
    const rest = await this.#tried(bundle)
    if (isRefusal(rest)) {
      this.parts.log.withdraw(bundle.place, metaBytes)
      return rest
    }
    return () => {
      this.#coming.delete(bundle.id)
      this.#put(rest, bundle.id)
    }
  }

  /** The ids that are not written yet. */
  async #tried(bundle: LoggedBundle): Promise<readonly Uint8Array[] | Refusal> {
    const max = this.parts.insideMax ?? insideMax
    let rest: Uint8Array[] = []
    let count = 0
    try {
      const steps = this.idsIn(bundle)
      for (;;) {
        const { done, value } = await steps.next()
        if (done === true) return value ? tooDeep : rest
        count += value.entries
        if (count > max) {
          await steps.return(false)
          return refuse(
            'malformed',
            'client',
            `the bundle has more than ${max} items, at all levels together`,
          )
        }
        rest.push(...value.ids)
        if (rest.length < rowsMax) continue
        const ids = rest
        this.parts.uploads.environment.write(() => this.#put(ids, bundle.id))
        rest = []
      }
    } catch (error) {
      if (isDiskError(error)) return diskRefusal(error)
      const code = codeOf(error)
      if (code === undefined) throw error
      return refuse('busy', 'self', `the bundle cannot be read again: ${code}`)
    }
  }

  #put(ids: readonly Uint8Array[], bundle: Id): void {
    const { uploads } = this.parts
    uploads.noted.put(ids, bundle, (other) => this.#isKnown(other))
  }

  #isKnown(bundle: Id): boolean {
    const item = this.parts.uploads.find(bundle)
    return item === undefined ? this.#coming.has(bundle) : !isGone(item)
  }

  /** The ids of all items in a bundle, at every level, by steps. */
  async *idsIn({ headerSize, place }: LoggedBundle): ReturnType<typeof insideIds> {
    const { log } = this.parts
    const handle = await open(`${log.folder}/${logFileName(place.file)}`, 'r')
    try {
      const bytes = { start: place.offset + headerSize, end: place.offset + place.sizeBytes }
      const readAt = async (buffer: Uint8Array, at: number): Promise<number> =>
        (await handle.read(buffer, 0, buffer.length, at)).bytesRead
      return yield* insideIds(readAt, bytes)
    } finally {
      await handle.close()
    }
  }

  async #catchUp(payBack: PayBack | undefined): Promise<void> {
    const { uploads, closing } = this.parts
    if (!this.#isWhole) await this.#findOld()
    while (!closing.aborted) {
      const [id] = uploads.noted.waiting(1)
      if (id !== undefined) await this.#noteLate(id, payBack)
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
    }
  }

  /** Bundles that an older release has accepted, and whose bytes are still here. */
  async #findOld(): Promise<void> {
    const { uploads, closing, logger } = this.parts
    for (let after: Id | undefined; !closing.aborted; ) {
      const { bundles, last } = uploads.keptBundles(after, pageRows)
      const write = (): void =>
        uploads.environment.write(() => {
          for (const id of bundles) uploads.noted.wait(id)
          if (last === undefined) uploads.putWord(word, '1')
        })
      if (!(await writePatiently(write, closing, logger))) return
      this.#isWhole = last === undefined
      if (last === undefined) return
      after = last
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  /** One that is accepted already, so that it cannot be refused. */
  async #noteLate(id: Id, payBack: PayBack | undefined): Promise<void> {
    const { uploads, closing, logger } = this.parts
    const item = uploads.find(id)
    const isHere = item !== undefined && item.released !== true
    const why = isHere ? await this.#notedLate(item, payBack) : undefined
    if (why !== undefined) logger.warn({ id, why }, 'the items in an accepted bundle could not all be noted')
    if (why === tryAgain) await pause(againMs, closing)
    if (why === tryAgain || closing.aborted) return
    await writePatiently(() => uploads.environment.write(() => uploads.noted.noted(id)), closing, logger)
  }

  async #notedLate(item: AcceptedItem, payBack: PayBack | undefined): Promise<string | undefined> {
    const { uploads, closing, logger } = this.parts
    try {
      const steps = this.idsIn(item)
      for (;;) {
        const { done, value } = await steps.next()
        if (done === true) return value ? tooDeep.message : undefined
        const write = (): void => uploads.environment.write(() => this.#put(value.ids, item.id))
        if (!(await writePatiently(write, closing, logger))) return undefined
        for (const id of value.ids) await this.#paidBack(idOfBytes(id), item, payBack)
        await new Promise((resolve) => setImmediate(resolve))
      }
    } catch (error) {
      const code = codeOf(error)
      if (code === undefined) throw error
      return code === 'ENOENT' ? 'its bytes are gone' : tryAgain
    }
  }

  /** An item that was charged although an earlier bundle had paid for it. One that came before its bundle was an order. */
  async #paidBack(id: Id, bundle: AcceptedItem, payBack: PayBack | undefined): Promise<void> {
    const { uploads, closing, logger } = this.parts
    const alone = uploads.find(id)
    if (payBack === undefined || alone === undefined || isGone(alone)) return
    if (alone.winc === '0' || alone.heldAs !== undefined || alone.receivedMs <= bundle.receivedMs) return
    while (!closing.aborted) {
      const paid = await payBack(id)
      if (!isRefusal(paid)) {
        logger.warn(
          { id, bundle: bundle.id },
          'an item was charged that its bundle had paid for: it was given back',
        )
        return
      }
      await pause(againMs, closing)
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
    const unknown = new Set<Id>()
    for (let after: Uint8Array | undefined; !closing.aborted; ) {
      const rows = uploads.noted.behind(after, pageRows)
      const unneeded = rows.filter(({ id, bundle }) => this.#isUnneeded(id, bundle, unknown))
      const write = (): void =>
        uploads.environment.write(() => {
          for (const { id } of unneeded) uploads.noted.remove(id)
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
      return this.#unknown.has(bundle) && !this.#coming.has(bundle)
    }
    if (isGone(item)) return true
    return item.permanent !== undefined && (uploads.around(id) !== undefined || isInBlock?.(id) === true)
  }
}

const tooDeep = refuse(
  'malformed',
  'client',
  'the bundle has bundles in it that are more than 10 levels deep',
)
