import type { Clock, Timer } from '../../actor/clock.js'
import type { Id } from '../../format/id.js'
import { isDiskError } from '../../store/disk-error.js'
import type { DurableLog } from '../../store/segments/durable-log.js'
import type { AcceptedItem, Uploads } from '../records/uploads.js'
import type { GatewayNews } from './gateway-news.js'
import type { ItemAnnouncer } from './item-announcer.js'

export interface SandboxParts {
  readonly uploads: Uploads
  readonly itemLog: Pick<DurableLog, 'release'>
  readonly announcer: Pick<ItemAnnouncer, 'forget'>
  /** Absent: no gateway on another machine has them. */
  readonly news?: Pick<GatewayNews, 'addGone' | 'wake'>
  readonly clock: Clock
  /** Items are kept for so long. */
  readonly keepMs: number
  readonly everyMs: number
}

/** Ids that go in one transaction, if the last bundle has not more: those of items, and of what lies in them. */
const atOnce = 1000

interface Old {
  readonly item: AcceptedItem
  /** Ids of items in it, where it is a bundle. */
  readonly within: readonly Id[]
}

/** Instead of a bundler, where uploads are for trying out: nothing reaches the chain, and what is old is gone. */
export class Sandbox {
  readonly #timer: Timer
  #isSweeping = false

  constructor(private readonly parts: SandboxParts) {
    this.#timer = parts.clock.every(parts.everyMs, () => void this.#sweep())
  }

  close(): void {
    this.#timer.cancel()
  }

  /**
   * Items are unreadable before the index forgets them, because a reader would make it learn them again. After a kill in between
   * they are found and reported again. Only then they may be uploaded again (`isGone`).
   */
  async #sweep(): Promise<void> {
    if (this.#isSweeping) return
    this.#isSweeping = true
    try {
      for (let old = this.#old(); old.length > 0; old = this.#old()) {
        this.#release(old)
        if (!(await this.parts.announcer.forget(this.#gone(old)))) return
        this.#remove(old)
      }
    } catch (error) {
      // The next sweep tries again what a full disk did not take.
      if (!isDiskError(error)) throw error
    } finally {
      this.#isSweeping = false
    }
  }

  #old(): Old[] {
    const { uploads, clock, keepMs } = this.parts
    const old: Old[] = []
    let ids = 0
    for (const id of uploads.oldest(atOnce)) {
      const item = uploads.find(id)
      if (item === undefined || clock.now() - item.receivedMs < keepMs) break
      // What lies in it is not known yet, and would be announced after it was forgotten: the next sweep finds it.
      if (uploads.isUnopened(id)) break
      const within = item.isBundle === true ? [...uploads.within(id)] : []
      old.push({ item, within })
      ids += 1 + within.length
      if (ids >= atOnce) break
    }
    return old
  }

  #release(old: readonly Old[]): void {
    const { uploads } = this.parts
    uploads.environment.write(() => {
      for (const { item } of old) uploads.release(item)
    })
  }

  /** Ids of what is nowhere any more without these. */
  #gone(old: readonly Old[]): Id[] {
    const { uploads } = this.parts
    return old.flatMap(({ item, within }) => [
      item.id,
      ...within.filter((id) => uploads.isOnlyWithin(item.id, id)),
    ])
  }

  #remove(old: readonly Old[]): void {
    const { uploads, itemLog, news } = this.parts
    uploads.environment.write(() => {
      for (const id of this.#gone(old)) news?.addGone(id)
      for (const { item, within } of old) {
        for (const id of within) uploads.removeInner(item.id, id)
        uploads.letGo(item, 'This is a sandbox: the item was kept for its time, and is gone')
      }
    })
    news?.wake()
    for (const { item } of old) itemLog.release(item.place)
  }
}
