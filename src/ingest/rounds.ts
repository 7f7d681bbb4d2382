import { pause, toGrid } from '../actor/clock.js'
import type { Outage } from '../actor/outage.js'
import { isDiskError } from '../store/disk-error.js'
import { countDiskError } from '../store/disk-errors.js'

/** While the disk is full or fails, a round is begun again after so long, and each time after twice as long. */
const againMs = { first: 1000, most: 15_000 } as const

/** Resolves when all have ended; rejects then with the first failure, so that none goes on beside the next round. */
export async function allEnded(works: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(works)).find(({ status }) => status === 'rejected')
  if (failed !== undefined) throw (failed as PromiseRejectedResult).reason
}

/** Repeats a piece of work until it is stopped. */
export class Rounds {
  readonly #abort = new AbortController()
  #running: Promise<void> = Promise.resolve()

  /**
   * `round` does what is to be done now and returns how many milliseconds to wait until the next. `disk` hears that the disk
   * takes nothing, and that it takes changes again.
   */
  constructor(
    private readonly round: (signal: AbortSignal) => Promise<number>,
    private readonly disk: Pick<Outage, 'failed' | 'well'>,
    private readonly diskFirstMs: number = againMs.first,
  ) {}

  /** Resolves when they were stopped; rejects with what a round throws, if that is no error of the disk. */
  run(): Promise<void> {
    this.#running = this.#run()
    return this.#running
  }

  /** Aborts the round under way and resolves when nothing of it is left. */
  async stop(): Promise<void> {
    this.#abort.abort()
    await this.#running.catch(() => 'handled by the caller of run')
  }

  async #run(): Promise<void> {
    const { signal } = this.#abort
    let diskMs = this.diskFirstMs
    while (!signal.aborted) {
      let waitMs = diskMs
      try {
        waitMs = await this.round(signal)
        this.disk.well()
        diskMs = this.diskFirstMs
      } catch (error) {
        if (!isDiskError(error)) throw error
        countDiskError(error)
        this.disk.failed({ err: error, waitMs })
        diskMs = Math.min(2 * diskMs, againMs.most)
      }
      if (waitMs > 0) await pause(waitMs >= 1000 ? toGrid(waitMs) : waitMs, signal)
    }
  }
}
