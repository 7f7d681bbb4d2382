import { type FileHandle, open } from 'node:fs/promises'
import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { Found, Source, Wanted } from '../../source/source.js'
import { windowIn } from '../../source/window-in.js'
import { codeOf } from '../../store/blobs.js'
import type { Environment, Table } from '../../store/lmdb.js'
import { logFileName } from '../../store/segments/log-file.js'
import type { PendingMarks } from '../records/pending-marks.js'
import {
  type AcceptedItem,
  acceptedItem,
  type InnerItem,
  innerItem,
  openUploadTables,
} from '../records/uploads.js'

const pieceBytes = 256 * 1024

interface Kept {
  /** In whose bytes it lies. */
  readonly item: AcceptedItem
  /** The bundle that was uploaded, where it is not the item itself. */
  readonly around: readonly Id[]
  readonly sizeBytes: number
  /** Where it begins in these bytes. */
  readonly payload: number
  readonly contentType: string | undefined
}

/** Payloads of items that were uploaded here, out of the log of uploads: until they are permanent, and some time after. */
export class IntakeSource implements Source {
  readonly name = 'uploads'
  readonly #environment: Environment
  readonly #items: Table
  readonly #inner: Table

  constructor(
    tablesPath: string,
    private readonly logFolder: string,
    private readonly marks?: PendingMarks,
  ) {
    this.#environment = openUploadTables(tablesPath)
    this.#items = this.#environment.table('items')
    this.#inner = this.#environment.table('inner')
  }

  async open({ id, window: wish }: Wanted): Promise<Found | Refusal> {
    // Before the tables are read: they may be completed between the two.
    const isBrought = this.marks?.isBrought !== false
    const due = this.marks?.dueOf(id)
    let kept = this.#kept(id)
    if (kept === undefined && due !== undefined) {
      const isShown = await this.marks?.shown(due)
      kept = this.#kept(id)
      // It may have a receipt: that is no answer by which it is believed to be nowhere.
      if (kept === undefined && isShown !== true)
        return refuse('busy', 'self', 'the latest uploads are not written down yet')
    }
    if (kept === undefined) {
      if (!isBrought) return refuse('busy', 'self', 'uploads from before the start are not all read yet')
      return refuse('unknown', 'client', 'it was not uploaded to this service')
    }
    const { item, around, sizeBytes, payload, contentType } = kept
    const window = wish && windowIn(wish, sizeBytes)
    if (isRefusal(window)) return window
    const start = window?.start ?? 0
    const end = window === undefined ? sizeBytes : window.end + 1
    const handle = await this.#opened(id, item)
    if (isRefusal(handle)) return handle
    return {
      name: this.name,
      origin: this.name,
      sizeBytes,
      body: windowOf(handle, item.place.offset + payload + start, end - start),
      trusted: false,
      proven: false,
      learned: contentType === undefined ? {} : { contentType },
      hints: {},
      around,
    }
  }

  /** Where the payload of an item lies: one that was uploaded, or one in an uploaded bundle. */
  #kept(id: Id): Kept | undefined {
    this.#environment.refresh()
    const item = acceptedItem(this.#items, id)
    if (item !== undefined && item.released !== true)
      return keptIn(item, [], { ...item, start: 0, ...item.place })
    const inner = innerItem(this.#inner, id)
    const around = inner && acceptedItem(this.#items, inner.parent)
    return inner === undefined || around === undefined || around.released === true
      ? undefined
      : keptIn(around, [inner.parent], inner)
  }

  async #opened(id: Id, { place }: AcceptedItem): Promise<FileHandle | Refusal> {
    try {
      return await open(`${this.logFolder}/${logFileName(place.file)}`, 'r')
    } catch (error) {
      const code = codeOf(error)
      if (code === undefined) throw error
      // Permanent, and gone from here meanwhile: others have it.
      if (code === 'ENOENT' && this.#kept(id) === undefined)
        return refuse('unknown', 'self', 'the upload is not kept here any more')
      return refuse('busy', 'self', `an upload cannot be read: ${code}`)
    }
  }

  close(): Promise<void> {
    return this.#environment.close()
  }
}

function keptIn(
  item: AcceptedItem,
  around: readonly Id[],
  { start, sizeBytes, headerSize, contentType }: Omit<InnerItem, 'parent'>,
): Kept {
  return { item, around, sizeBytes: sizeBytes - headerSize, payload: start + headerSize, contentType }
}

/** Bytes of a file; the file is closed when they were read, or when the reader leaves. */
async function* windowOf(
  handle: FileHandle,
  start: number,
  length: number,
): AsyncGenerator<Uint8Array | Refusal, undefined> {
  const buffer = Buffer.allocUnsafe(Math.max(1, Math.min(pieceBytes, length)))
  try {
    for (let done = 0; done < length; ) {
      const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.length, length - done), start + done)
      if (bytesRead === 0) {
        yield refuse('upstream', 'self', 'the log of uploads is shorter than its record')
        return undefined
      }
      yield buffer.subarray(0, bytesRead)
      done += bytesRead
    }
    return undefined
  } finally {
    await handle.close()
  }
}
