import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import type { Clock } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import { BundleReader } from '../../format/bundle-reader.js'
import type { Id } from '../../format/id.js'
import type { ItemHeader } from '../../format/item.js'
import { headersOfPayload } from '../../format/media-type.js'
import { ItemVerifier } from '../../proof/item-verifier.js'
import { normalizedAddress } from '../../proof/owner-address.js'
import { codeOf } from '../../store/blobs.js'
import { writePatiently } from '../../store/patient-write.js'
import { logFileName } from '../../store/segments/log-file.js'
import type { ItemAnnouncer } from '../news/item-announcer.js'
import { type AcceptedItem, type InnerItem, isGone, type Uploads } from '../records/uploads.js'
import type { Verdicts } from './verdicts.js'

/** Larger bundles are opened when they are in a block, as those of others are. */
const bundleMaxBytes = 256 * 1024 * 1024
const itemsMax = 20_000
/** Judged, written and announced at once. */
const batchMax = 256
const pieceBytes = 256 * 1024
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

interface Read {
  readonly header: ItemHeader
  readonly start: number
  readonly sizeBytes: number
  readonly message: Uint8Array
  readonly digest: Uint8Array
}

/**
 * Opens uploaded items that are bundles: what lies in them is served, found by queries, and known to `check-missing` before the
 * bundle is in a block. Those that wait are on disk, so that a kill between the receipt and this loses none of them.
 */
export class InnerItems {
  readonly #running: Promise<void>
  readonly #aborted: Promise<void>
  #wake: (() => void) | undefined
  /** By bundle: who waits until it was looked into. */
  readonly #waiting = new Map<Id, () => void>()
  #isOfAll = false
  #last: Id | undefined

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
    const { uploads, closing, logger } = this.parts
    while (!closing.aborted) {
      uploads.environment.refresh()
      const id = this.#next()
      if (id === undefined) {
        await this.#woken()
        continue
      }
      const item = uploads.find(id)
      const why = item === undefined ? 'it is not kept' : await this.#open(item)
      if (closing.aborted) return
      // The bundle itself stays accepted: its owner signed these bytes, whatever they are.
      if (why !== undefined) logger.info({ id, why }, 'an uploaded bundle was not read to its end')
      const opened = (): void => uploads.environment.write(() => uploads.opened(id))
      if (!(await writePatiently(opened, closing, logger))) return
      this.#waiting.get(id)?.()
    }
  }

  /** By turns one whose uploader waits, the first that came, and one of all. */
  #next(): Id | undefined {
    const { uploads } = this.parts
    this.#isOfAll = !this.#isOfAll
    const [waited] = this.#waiting.keys()
    if (!this.#isOfAll && waited !== undefined && uploads.isUnopened(waited)) return waited
    this.#last = uploads.nextUnopened(this.#last)
    return this.#last
  }

  #woken(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  /** Why it was not read to its end; undefined where it was. */
  async #open(item: AcceptedItem): Promise<string | undefined> {
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
      return await this.#read(item, handle)
    } finally {
      await handle.close()
    }
  }

  async #read(item: AcceptedItem, handle: FileHandle): Promise<string | undefined> {
    const reader = new BundleReader({ itemsMax, sizeBytes: item.place.sizeBytes - item.headerSize })
    const end = item.place.sizeBytes
    const buffer = Buffer.alloc(Math.max(1, Math.min(pieceBytes, end)))
    let batch: Read[] = []
    let [one, header, digest] = [0, undefined as ItemVerifier | undefined, createHash('sha256')]
    /** Where each item begins, by its index. */
    let starts: number[] = []
    for (let at = item.headerSize; at < end && !this.parts.closing.aborted; ) {
      const { bytesRead } = await handle.read(
        buffer,
        0,
        Math.min(buffer.length, end - at),
        item.place.offset + at,
      )
      if (bytesRead === 0) return 'the log is shorter than its record'
      at += bytesRead
      for (const event of reader.push(buffer.subarray(0, bytesRead))) {
        if (event.kind === 'broken') return event.refusal.message
        if (event.kind === 'entries') {
          one = item.headerSize + event.headerSize
          starts = event.entries.map(({ sizeBytes }) => {
            one += sizeBytes
            return one - sizeBytes
          })
        }
        if (event.kind === 'header') {
          header = new ItemVerifier(event.header)
          digest = createHash('sha256')
        }
        if (event.kind === 'payload') {
          header?.update(event.bytes)
          digest.update(event.bytes)
        }
        if (event.kind === 'end' && header !== undefined) {
          const start = starts[event.index] ?? 0
          const sizeBytes = (starts[event.index + 1] ?? end) - start
          const [message, sha256] = [header.message(), digest.digest()]
          batch.push({ header: header.header, start, sizeBytes, message, digest: sha256 })
          header = undefined
        }
      }
      if (batch.length < batchMax && at < end) continue
      await this.#keep(item, batch)
      batch = []
    }
    return undefined
  }

  /** Writes down those that their owners signed, and announces them. */
  async #keep(item: AcceptedItem, batch: readonly Read[]): Promise<void> {
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
      if (blockedOwners.has(normalizedAddress(header.owner))) return false
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
