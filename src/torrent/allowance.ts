import type { Clock, Timer } from '../actor/clock.js'

export interface AllowanceOptions {
  /** 0: unlimited. */
  readonly bytesPerSecond: number
  /** From midnight to midnight (UTC); 0: unlimited. */
  readonly bytesPerDay: number
}

const dayMs = 86_400_000

interface Waiting {
  readonly bytes: number
  readonly go: () => void
}

/**
 * Bytes that may be sent: a token bucket that holds at most the tokens of one second, and a total for each day.
 * Requests are served in the order in which they came, so that no peer waits forever. The day's count is not kept
 * across restarts.
 */
export class Allowance {
  #tokens: number
  #filledMs: number
  #day = -1
  #dayBytes = 0
  #timer: Timer | undefined
  /** In the order of arrival. Bounded by its callers: each peer that is connected has a few entries in it. */
  readonly #waiting = new Set<Waiting>()

  constructor(
    private readonly options: AllowanceOptions,
    private readonly clock: Clock,
  ) {
    this.#tokens = options.bytesPerSecond
    this.#filledMs = clock.monotonic()
  }

  /** Whether the day's bytes are used up. */
  get isSpent(): boolean {
    this.#turnDay()
    return this.options.bytesPerDay > 0 && this.#dayBytes >= this.options.bytesPerDay
  }

  /**
   * Calls `go` when `bytes` may be sent: at once, inside this call, where nobody waits and there are enough. The result gives
   * the request up: a peer that has left must not use bytes up that nobody sends.
   */
  take(bytes: number, go: () => void): () => void {
    const waiting = { bytes, go }
    this.#waiting.add(waiting)
    if (this.#waiting.size === 1) this.#serve()
    return () => this.#giveUp(waiting)
  }

  close(): void {
    this.#timer?.cancel()
    this.#waiting.clear()
  }

  #giveUp(waiting: Waiting): void {
    const [first] = this.#waiting
    this.#waiting.delete(waiting)
    if (first === waiting) this.#serve()
  }

  #serve(): void {
    for (const next of this.#waiting) {
      const waitMs = this.#waitMs(next.bytes)
      this.#timer?.cancel()
      if (waitMs > 0) {
        this.#timer = this.clock.after(waitMs, () => this.#serve())
        return
      }
      this.#tokens -= next.bytes
      this.#dayBytes += next.bytes
      this.#waiting.delete(next)
      next.go()
    }
  }

  #waitMs(bytes: number): number {
    if (this.isSpent) return dayMs - (this.clock.now() % dayMs)
    const { bytesPerSecond } = this.options
    if (bytesPerSecond === 0) return 0
    const now = this.clock.monotonic()
    this.#tokens = Math.min(bytesPerSecond, this.#tokens + ((now - this.#filledMs) * bytesPerSecond) / 1000)
    this.#filledMs = now
    // One request may need more tokens than the bucket ever holds. So a full bucket is enough, and the balance
    // becomes negative: the requests after it wait until it is paid back.
    const needed = Math.min(bytes, bytesPerSecond)
    return this.#tokens >= needed ? 0 : Math.ceil(((needed - this.#tokens) * 1000) / bytesPerSecond)
  }

  #turnDay(): void {
    const day = Math.floor(this.clock.now() / dayMs)
    if (day === this.#day) return
    this.#day = day
    this.#dayBytes = 0
  }
}
