import type { Clock, Timer } from '../actor/clock.js'
import { isDiskError } from '../store/lmdb.js'
import type { DurableLog } from '../store/segments/durable-log.js'
import type { GatewayNews } from './gateway-news.js'
import type { ItemAnnouncer } from './item-announcer.js'
import type { AcceptedItem, Uploads } from './uploads.js'

export interface SandboxParts {
  readonly uploads: Uploads
  readonly log: Pick<DurableLog, 'release'>
  readonly announcer: Pick<ItemAnnouncer, 'forget'>
  /** Absent: no gateway elsewhere was told of them. */
  readonly news?: Pick<GatewayNews, 'addGone'>
  readonly clock: Clock
  /** Items are kept for so long. */
  readonly keepMs: number
  readonly everyMs: number
}

/** Items that go in one transaction. */
const atOnce = 1000

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

  /** The index forgets them first: after a kill in between they are found here again, and told again. */
  async #sweep(): Promise<void> {
    if (this.#isSweeping) return
    this.#isSweeping = true
    try {
      for (let gone = this.#old(); gone.length > 0; gone = this.#old()) {
        if (!(await this.parts.announcer.forget(gone.map(({ id }) => id)))) return
        this.#remove(gone)
      }
    } catch (error) {
      // The next sweep tries again what a full disk did not take.
      if (!isDiskError(error)) throw error
    } finally {
      this.#isSweeping = false
    }
  }

  #old(): AcceptedItem[] {
    const { uploads, clock, keepMs } = this.parts
    const old: AcceptedItem[] = []
    for (const id of uploads.oldest(atOnce)) {
      const item = uploads.find(id)
      if (item === undefined || clock.now() - item.receivedMs < keepMs) break
      old.push(item)
    }
    return old
  }

  #remove(items: readonly AcceptedItem[]): void {
    const { uploads, log, news } = this.parts
    uploads.environment.write(() => {
      for (const item of items) {
        uploads.unqueue(item)
        news?.addGone(item.id)
        uploads.put({
          ...item,
          released: true,
          reason: 'This is a sandbox: the item was kept for its time, and is gone',
        })
      }
    })
    for (const { place } of items) log.release(place)
  }
}
