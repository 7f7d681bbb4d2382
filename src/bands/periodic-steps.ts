import type { Clock, Timer } from '../actor/clock.js'
import type { Log } from '../actor/log.js'

/** Runs some steps in order, in rounds at a fixed interval. A step that fails is logged, and runs again in the next round. */
export class PeriodicSteps {
  #timer: Timer | undefined
  #running: Promise<void> | undefined
  #stopped = false

  constructor(
    private readonly steps: readonly (() => Promise<unknown>)[],
    private readonly everyMs: number,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  /** Begins the first round at once. */
  start(): void {
    void this.run()
  }

  /** One round; a second one joins the first. Never rejects. */
  run(): Promise<void> {
    this.#running ??= this.#round().finally(() => {
      this.#running = undefined
      if (!this.#stopped) this.#timer = this.clock.after(this.everyMs, () => void this.run())
    })
    return this.#running
  }

  async #round(): Promise<void> {
    this.#timer?.cancel()
    for (const step of this.steps) {
      if (this.#stopped) return
      try {
        await step()
      } catch (error) {
        this.log.error({ err: error }, 'bands could not be built or published')
      }
    }
  }

  /** No further step begins; resolves when the one under way is over. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#timer?.cancel()
    await this.#running
  }
}
