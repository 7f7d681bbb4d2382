import { type Clock, systemClock } from '../../actor/clock.js'

/** The system takes a quarter of a MiB in a tenth of this time, unless it has the writer wait for the disk. */
const slowMs = 10

/** So long nothing waits for a disk that was slow. */
const asideMs = 1000

/**
 * Whether a thread may write to files itself. The kernel copies written bytes to memory, but blocks a writer when too many of
 * them are not on the disk yet. After one blocked write all writes go to other threads for a second.
 */
export class WritePace {
  #asideUntilMs = Number.NEGATIVE_INFINITY

  constructor(private readonly clock: Clock) {}

  /** The disk was not slow lately. */
  get isPrompt(): boolean {
    return this.clock.monotonic() >= this.#asideUntilMs
  }

  /** Calls `write`, which writes up to a quarter of a MiB, and takes its time. */
  timed(write: () => void): void {
    const startedMs = this.clock.monotonic()
    write()
    const endedMs = this.clock.monotonic()
    if (endedMs - startedMs > slowMs) this.#asideUntilMs = endedMs + asideMs
  }
}

/** One disk for all transfers of a thread. */
export const ownPace = new WritePace(systemClock)
