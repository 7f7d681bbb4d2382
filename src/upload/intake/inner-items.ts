import { type FileHandle, open } from 'node:fs/promises'
import type { Clock } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import type { Id } from '../../format/id.js'
import { headersOfPayload } from '../../format/media-type.js'
import { isListed, normalizedAddress } from '../../proof/owner-address.js'
import { codeOf } from '../../store/blobs.js'
import { isPlaceError } from '../../store/disk-error.js'
import { writePatiently } from '../../store/patient-write.js'
import { logFileName } from '../../store/segments/log-file.js'
import type { ItemAnnouncer } from '../news/item-announcer.js'
import type { OpeningLine } from '../records/opening-lines.js'
import { type AcceptedItem, type InnerItem, isGone, type Uploads } from '../records/uploads.js'
import { type InsideItem, InsideReader } from './inside-reader.js'
import { OpeningShares } from './opening-shares.js'
import type { Verdicts } from './verdicts.js'

/** Larger bundles are opened when they are in a block, as those of others are. */
const bundleMaxBytes = 256 * 1024 * 1024
/** Judged, written and announced at once: then another bundle goes on. */
const batchMax = 256
const pieceBytes = 256 * 1024
/** So many bytes that are read cost as much as an item. */
const costBytes = 64 * 1024
/** Clients of drives send two or three items as one bundle, and request one of them as soon as they have its receipt. */
const patienceMs = 1000

export interface InnerItemsParts {
  readonly uploads: Uploads
  readonly logFolder: string
  readonly verdicts: Pick<Verdicts, 'verdict'>
  readonly announcer: Pick<ItemAnnouncer, 'announce'>
  /** Normalized addresses. Their items are left out of bundles that came before they were blocked. */
  readonly blockedOwners: ReadonlySet<string>
  /** Whether uploads are kept for some time only. */
  readonly isSandbox: boolean
  readonly clock: Clock
  readonly logger: Log
  readonly closing: AbortSignal
}

/** A bundle that is being opened. */
interface Opening {
  readonly id: Id
  /** Each step reads and keeps a portion, and gives what it cost. Returns why it was not read to its end. */
  readonly steps: AsyncGenerator<number, string | undefined>
}

/**
 * Opens uploaded items that are bundles: what lies in them is served, found by queries, and known to `check-missing` before the
 * bundle is in a block. Those that wait are on disk, so that a kill between the receipt and this loses none of them. They have
 * turns (`OpeningLines`), and large ones go on by portions.
 */
export class InnerItems {
  readonly #running: Promise<void>
  readonly #aborted: Promise<void>
  #wake: (() => void) | undefined
  /** Keyed by bundle: who waits until it was looked into. */
  readonly #waiting = new Map<Id, () => void>()
  readonly #shares = new OpeningShares()
  /** Keyed by line: those of its round that were not begun yet, and the one that is being opened. */
  readonly #rounds = new Map<OpeningLine, Id[]>()
  readonly #open = new Map<OpeningLine, Opening>()

  constructor(private readonly parts: InnerItemsParts) {
    this.#aborted = new Promise((resolve) => {
      parts.closing.addEventListener('abort', () => {
        resolve()
        this.#wake?.()
        for (const over of [...this.#waiting.values()]) over()
      })
    })
    this.#running = this.#run()
  }

  /** A bundle was accepted. */
  wake(): void {
    this.#wake?.()
  }

  /**
   * Resolves when the items of an accepted bundle are announced, or the time limit for the client is over. So the items can
   * usually be found when the receipt is sent.
   */
  opened(id: Id): Promise<void> {
    if (this.parts.closing.aborted || !this.parts.uploads.isUnopened(id)) return Promise.resolve()
    return new Promise((resolve) => {
      const over = (): void => {
        timer.cancel()
        this.#waiting.delete(id)
        resolve()
      }
      const timer = this.parts.clock.after(patienceMs, over)
      this.#waiting.set(id, over)
    })
  }

  /** After `closing`: resolves when nothing is read or written any more. */
  stopped(): Promise<void> {
    return this.#running
  }

  async #run(): Promise<void> {
    const { uploads, closing } = this.parts
    while (!closing.aborted) {
      uploads.environment.refresh()
      const line = this.#shares.next((one) => this.#hasSome(one))
      if (line === undefined) await this.#woken()
      else await this.#step(line)
    }
    for (const { steps } of this.#open.values()) await steps.return(undefined)
  }

  #hasSome(line: OpeningLine): boolean {
    if (this.#open.has(line)) return true
    const { opening } = this.parts.uploads
    const round = this.#rounds.get(line) ?? []
    for (let [first] = round; first !== undefined && !opening.has(first); [first] = round) round.shift()
    if (round.length === 0) round.push(...opening.round(line))
    this.#rounds.set(line, round)
    return round.length > 0
  }

  /** Goes on with the bundle that is being opened, or begins the next one. */
  async #step(line: OpeningLine): Promise<void> {
    const { uploads, closing, logger } = this.parts
    let opening = this.#open.get(line)
    if (opening === undefined) {
      const id = this.#rounds.get(line)?.shift()
      if (id === undefined) return
      opening = { id, steps: this.#opened(uploads.find(id)) }
      this.#open.set(line, opening)
    }
    const { id, steps } = opening
    const { done, value } = await steps.next()
    if (done !== true) {
      this.#shares.charge(line, value)
      return
    }
    this.#open.delete(line)
    this.#shares.charge(line, 1)
    if (closing.aborted) return
    // The bundle itself stays accepted: its owner signed these bytes, whatever they are.
    if (value !== undefined) logger.info({ id, why: value }, 'an uploaded bundle was not read to its end')
    const opened = (): void => uploads.environment.write(() => uploads.opened(id))
    if (await writePatiently(opened, closing, logger)) this.#waiting.get(id)?.()
  }

  #woken(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  async *#opened(item: AcceptedItem | undefined): AsyncGenerator<number, string | undefined> {
    if (item === undefined) return 'it is not kept'
    const { place } = item
    if (item.released === true || item.reason !== undefined) return 'its bytes are not kept any more'
    if (place.sizeBytes > bundleMaxBytes) return `it has more than ${bundleMaxBytes} bytes`
    let handle: FileHandle
    try {
      handle = await open(`${this.parts.logFolder}/${logFileName(place.file)}`, 'r')
    } catch (error) {
      const code = codeOf(error)
      if (code === undefined) throw error
      return `the log cannot be read: ${code}`
    }
    try {
      return yield* this.#read(item, handle)
    } catch (error) {
      if (!isPlaceError(error)) throw error
      return `the log cannot be read: ${codeOf(error)}`
    } finally {
      await handle.close()
    }
  }

  async *#read(item: AcceptedItem, handle: FileHandle): AsyncGenerator<number, string | undefined> {
    const { offset, sizeBytes: end } = item.place
    const reader = new InsideReader(item.headerSize, end)
    const buffer = Buffer.alloc(Math.max(1, Math.min(pieceBytes, end)))
    let items: InsideItem[] = []
    let cost = 0
    for (let at = item.headerSize; at < end && !this.parts.closing.aborted; ) {
      const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.length, end - at), offset + at)
      if (bytesRead === 0) return 'the log is shorter than its record'
      at += bytesRead
      cost += bytesRead / costBytes
      const before = items.length
      const why = reader.push(buffer.subarray(0, bytesRead), items)
      if (why !== undefined) return why
      cost += items.length - before
      if (cost < batchMax && at < end) continue
      await this.#keep(item, items)
      yield cost
      items = []
      cost = 0
    }
    return undefined
  }

  /** Writes down those that their owners signed, and announces them. */
  async #keep(item: AcceptedItem, batch: readonly InsideItem[]): Promise<void> {
    const { verdicts, uploads, announcer, blockedOwners, isSandbox, closing, logger } = this.parts
    const judged = await Promise.all(
      batch.map(async (read) => {
        const { id, signatureType, owner, signature } = read.header
        return verdicts.verdict({ id, signatureType, owner, signature, message: read.message })
      }),
    )
    // One that was uploaded on its own is known by that already.
    const kept = batch.filter(({ header }, at) => {
      const alone = uploads.find(header.id)
      if (isListed(blockedOwners, header.signatureType, header.owner)) return false
      return judged[at] === true && (alone === undefined || isGone(alone))
    })
    const write = (): void =>
      uploads.environment.write(() => {
        for (const { header, start, sizeBytes, digest } of kept) {
          const { contentType } = headersOfPayload(header.tags)
          const inner: InnerItem = {
            parent: item.id,
            start,
            sizeBytes,
            headerSize: header.headerSize,
            ...(contentType === undefined ? {} : { contentType }),
          }
          uploads.putInner(header.id, inner, isSandbox)
          uploads.putContent(normalizedAddress(header.owner), digest, header.id)
        }
      })
    if (!(await writePatiently(write, closing, logger))) return
    // Nothing is announced while the service ends: the bundle is opened again at its next start.
    await Promise.race([Promise.all(kept.map((read) => announcer.announce(read))), this.#aborted])
  }
}
