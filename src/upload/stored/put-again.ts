import { type Clock, pause } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import { isDiskError, isPlaceError } from '../../store/disk-error.js'
import type { DurableLog } from '../../store/segments/durable-log.js'
import type { Uploads } from '../records/uploads.js'
import { loggedAgain } from './logged-again.js'
import type { StorableItem } from './stored-groups.js'

export interface PutAgainParts {
  readonly uploads: Uploads
  readonly itemLog: Pick<DurableLog, 'folder'>
  /** Items in the log that no group has. */
  readonly unstored: Id[]
  readonly clock: Clock
  readonly logger: Pick<Log, 'warn'>
  /** Resolves with the group that has the item; `read` reads it out of the log. */
  readonly put: (read: () => Promise<StorableItem>) => Promise<string | Refusal>
  readonly againMs: number
  readonly signal: AbortSignal
}

/** Items that are put once more at the same time. */
const atOnce = 512

/** Puts what was accepted without the store, or was lost there. */
export class PutAgain {
  #running: Promise<void> | undefined
  /** Items that cannot be read, as the log states already. */
  readonly #unread = new Set<Id>()

  constructor(private readonly parts: PutAgainParts) {}

  /** How many the store does not have, for the health check. */
  get warnings(): readonly string[] {
    const { length } = this.parts.unstored
    return length === 0
      ? []
      : [`${length} accepted uploads are not in the object store: they are put there again`]
  }

  /** Goes on until all of it is there, or the service ends. What cannot be read is tried for as long. */
  begin(): void {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
    })
  }

  /** Resolves when nothing is under way any more. */
  async settled(): Promise<void> {
    await this.#running
  }

  async #run(): Promise<void> {
    const { unstored, clock, againMs, signal } = this.parts
    while (unstored.length > 0 && !signal.aborted) {
      const ids = unstored.slice(0, atOnce)
      const left = await Promise.all(ids.map((id) => this.#one(id)))
      // Others only add to its end.
      unstored.splice(0, ids.length)
      unstored.push(...left.flatMap((id) => (id === undefined ? [] : [id])))
      if (left.some((id) => id !== undefined)) await pause(againMs, signal)
      else await new Promise<void>((resolve) => void clock.after(0, resolve))
    }
  }

  /** Its id where it must be tried again. */
  async #one(id: Id): Promise<Id | undefined> {
    const { uploads, itemLog, logger, put } = this.parts
    const isDue = (): ReturnType<Uploads['find']> => {
      const item = uploads.find(id)
      return item === undefined || item.released === true || item.stored !== undefined ? undefined : item
    }
    const item = isDue()
    if (item === undefined) return undefined
    try {
      const outcome = await put(() => loggedAgain(item, itemLog.folder))
      if (isRefusal(outcome)) return id
      this.#unread.delete(id)
      uploads.environment.write(() => {
        const now = isDue()
        if (now !== undefined) uploads.putStored(now, outcome)
        else if (!uploads.stored.has(outcome)) uploads.stored.end(outcome)
      })
      return undefined
    } catch (error) {
      if (!isDiskError(error) && !isPlaceError(error)) throw error
      if (!this.#unread.has(id))
        logger.warn({ id, err: error }, 'an upload could not be put into the object store again')
      this.#unread.add(id)
      return id
    }
  }
}
