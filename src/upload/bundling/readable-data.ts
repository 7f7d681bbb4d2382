import type { Clock } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { MerkleTree } from '../../proof/merkle.js'
import { codeOf } from '../../store/blobs.js'
import { isPlaceError } from '../../store/disk-error.js'
import type { DurableLog } from '../../store/segments/durable-log.js'
import { isSamePlace, type LogPlace } from '../../store/segments/log-file.js'
import type { AcceptedItem, Uploads } from '../records/uploads.js'
import { BundleData } from './bundle-data.js'

export interface ReadableDataParts {
  readonly uploads: Uploads
  readonly itemLog: Pick<DurableLog, 'release'>
  readonly logFolder: string
  /** Puts an item of the object store into the log once more; undefined: no store has it. */
  readonly fromStore?: (item: AcceptedItem) => Promise<LogPlace | Refusal | undefined>
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  readonly logger: Log
}

const otherBytes = 'its bytes are not those that were accepted'
/** Items that are taken from the object store at once; and after which time no more are: the bundler waits for it. */
const [mendsAtOnce, mendMaxMs] = [8, 30_000] as const
const noTime = refuse('late', 'self', 'the store is too slow for so many')

/** Reads the data of bundles, and finds the items in it that cannot be read, or are not what was accepted. */
export class ReadableData {
  constructor(private readonly parts: ReadableDataParts) {}

  /**
   * The tree over the data of these items, each of which is what was accepted. Undefined: some were not. What the object store
   * has of these is in the log again, at another place; the others are set aside (`UnreadableItems`). Rejects where no single
   * item is the reason.
   */
  async tree(data: BundleData, items: readonly AcceptedItem[]): Promise<MerkleTree | undefined> {
    const unfit = new Map<AcceptedItem, string>()
    const note = (item: AcceptedItem): void => void unfit.set(item, otherBytes)
    try {
      const tree = await data.tree(note)
      if (unfit.size === 0) {
        for (const { id } of items) this.parts.uploads.unreadable.remove(id)
        return tree
      }
    } catch (error) {
      if (!isPlaceError(error)) throw error
      await this.#eachAlone(items, unfit)
      if (unfit.size === 0) throw error
    }
    await this.#mendAll(unfit)
    return undefined
  }

  async #mendAll(unfit: ReadonlyMap<AcceptedItem, string>): Promise<void> {
    const { clock } = this.parts
    const beganMs = clock.monotonic()
    const left = unfit.entries()
    const worker = async (): Promise<void> => {
      for (const [item, reason] of left)
        await this.#mend(item, reason, clock.monotonic() - beganMs > mendMaxMs)
    }
    await Promise.all(Array.from({ length: mendsAtOnce }, worker))
  }

  async #eachAlone(items: readonly AcceptedItem[], unfit: Map<AcceptedItem, string>): Promise<void> {
    for (const item of items) {
      try {
        const note = (): void => void unfit.set(item, otherBytes)
        for await (const _ of new BundleData([item], this.parts.logFolder).pieces(note));
      } catch (error) {
        if (!isPlaceError(error)) throw error
        unfit.set(item, `its bytes cannot be read: ${codeOf(error)}`)
      }
    }
  }

  async #mend(item: AcceptedItem, reason: string, isLate: boolean): Promise<void> {
    const { uploads, fromStore, clock, logger } = this.parts
    const place = isLate && fromStore !== undefined ? noTime : await fromStore?.(item)
    if (place !== undefined && !isRefusal(place)) {
      this.#replace(item, place)
      logger.warn(
        { id: item.id, reason },
        'an upload was damaged on the disk: it was taken from the object store',
      )
      return
    }
    const why = isRefusal(place) ? `${reason}; object store: ${place.message}` : reason
    const isOther = reason === otherBytes && place === undefined
    if (uploads.unreadable.note(item.id, why, clock.now(), isOther))
      logger.error({ id: item.id, reason: why }, 'an accepted upload cannot be posted: it is set aside')
  }

  #replace({ id, place: before }: AcceptedItem, place: LogPlace): void {
    const { uploads, itemLog } = this.parts
    let isOver = false
    uploads.environment.write(() => {
      const now = uploads.find(id)
      isOver = now === undefined || now.released === true || !isSamePlace(now.place, before)
      if (now !== undefined && !isOver) uploads.put({ ...now, place })
    })
    itemLog.release(isOver ? place : before)
    uploads.unreadable.remove(id)
  }
}
