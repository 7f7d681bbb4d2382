import type { Clock, Timer } from '../actor/clock.js'

export interface ProofBudgetOptions {
  /** The part (0 to 1) of the processor time of everything else that may be used for proofs. */
  readonly share: number
  /** So many milliseconds in a second may be used whatever else happens. */
  readonly leastMsPerSecond: number
  /** What was not used is kept up to this. */
  readonly burstMs: number
  /** Requests to nodes. */
  readonly requestsPerSecond: number
  /** What a request to a node costs this program, milliseconds of processor time. */
  readonly requestMs: number
}

/**
 * What proving may cost: processor time in proportion to what else the program does, and requests a second to nodes. Work is
 * begun while some is left, and what it costs is taken afterwards, so that one long proof is followed by a long pause.
 */
export class ProofBudget {
  #leftMs: number
  #atMs: number
  #processorMs: number
  /** Used for proofs since the last refill. */
  #usedMs = 0
  #nextRequestMs = Number.NEGATIVE_INFINITY
  readonly #waiting = new Map<Timer, () => void>()

  /**
   * `processorMs`: processor time of the program so far. `onSpent` hears of all that proofs cost, `onRequest` of each request.
   */
  constructor(
    private readonly options: ProofBudgetOptions,
    private readonly clock: Clock,
    private readonly processorMs: () => number,
    private readonly onSpent: (ms: number) => void = () => undefined,
    private readonly onRequest: () => void = () => undefined,
  ) {
    this.#leftMs = options.burstMs
    this.#atMs = clock.monotonic()
    this.#processorMs = processorMs()
  }

  get requestsPerSecond(): number {
    return this.options.requestsPerSecond
  }

  /** 0 while some is left; else milliseconds until there is some, if the program does nothing else meanwhile. */
  get waitMs(): number {
    this.#refill()
    return this.#leftMs > 0 ? 0 : 1 - (this.#leftMs / this.options.leastMsPerSecond) * 1000
  }

  /** So many milliseconds of processor time were used for proofs. */
  spend(ms: number): void {
    this.#refill()
    this.#leftMs -= ms
    this.#usedMs += ms
    this.onSpent(ms)
  }

  /** Resolves when the next request to a node may be sent: in the order of the calls. */
  async request(): Promise<void> {
    const { requestsPerSecond, requestMs } = this.options
    const now = this.clock.monotonic()
    // What was not used in the last second may be used at once.
    const atMs = Math.max(this.#nextRequestMs, now - 1000)
    this.#nextRequestMs = atMs + 1000 / requestsPerSecond
    if (atMs > now) await this.#pause(atMs - now)
    this.spend(requestMs)
    this.onRequest()
  }

  /** Whoever waits waits no more. */
  close(): void {
    for (const [timer, go] of this.#waiting) {
      timer.cancel()
      go()
    }
    this.#waiting.clear()
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.clock.after(ms, () => {
        this.#waiting.delete(timer)
        resolve()
      })
      this.#waiting.set(timer, resolve)
    })
  }

  #refill(): void {
    const { share, leastMsPerSecond, burstMs } = this.options
    const [now, processorMs] = [this.clock.monotonic(), this.processorMs()]
    const othersMs = processorMs - this.#processorMs - this.#usedMs
    const leastMs = ((now - this.#atMs) / 1000) * leastMsPerSecond
    this.#leftMs = Math.min(burstMs, this.#leftMs + leastMs + Math.max(0, othersMs) * share)
    this.#atMs = now
    this.#processorMs = processorMs
    // Some of it is reported before, or after, the system counts it.
    this.#usedMs = Math.max(0, -othersMs)
  }
}

/** Processor time of this process with all its threads, milliseconds. */
export function processorMsOfProgram(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
