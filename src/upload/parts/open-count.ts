import { setImmediate as turn } from 'node:timers/promises'
import type { Clock } from '../../actor/clock.js'
import type { OpenElsewhere, PartRecords } from './part-records.js'

/** Uploads counted in one turn of the event loop: others must not wait for thousands. */
const portion = 500
/** Strangers decide how many uploads are open, so counting them takes at most this part of the time. */
const share = 1 / 20

/** Counts the uploads that all machines of a cluster have open, as often as their number lets it. */
export class OpenCount {
  #dueMs = Number.NEGATIVE_INFINITY

  constructor(
    private readonly records: Pick<PartRecords, 'listOpen'>,
    private readonly clock: Pick<Clock, 'monotonic'>,
  ) {}

  /**
   * Calls `each` for every open upload. Resolves with their ids; undefined: the last count was too short ago for its cost, or the
   * engine does not answer.
   */
  async count(each: (upload: OpenElsewhere) => void): Promise<ReadonlySet<string> | undefined> {
    const begunMs = this.clock.monotonic()
    if (begunMs < this.#dueMs) return undefined
    const open = await this.records.listOpen()
    // How long a failure took says nothing about the cost of a count: the next call tries again.
    if (open === undefined) return undefined
    for (const [at, upload] of open.entries()) {
      if (at % portion === portion - 1) await turn()
      each(upload)
    }
    const endedMs = this.clock.monotonic()
    this.#dueMs = endedMs + (endedMs - begunMs) * (1 / share - 1)
    return new Set(open.map(({ id }) => id))
  }
}
