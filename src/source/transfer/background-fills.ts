import type { Id } from '../../format/id.js'

export interface FillOptions {
  /** Payloads up to this size are brought whole after a window of them was read; 0: none is. */
  readonly maxBytes: number
  /** So many at once. */
  readonly concurrency: number
}

/** Payloads that wait for their turn; what comes while so many do is left to the next window. */
const waitingMax = 64

/** Brings payloads of which windows were read into the store, for nobody who waits. */
export class BackgroundFills {
  readonly #waiting = new Set<Id>()
  #running = 0
  #isStopped = false

  /** `bring` resolves when the payload is there, or could not be had. `begun` hears of each. */
  constructor(
    private readonly options: FillOptions,
    private readonly bring: (id: Id) => Promise<void>,
    private readonly begun: () => void = () => undefined,
  ) {}

  /** A window of a payload of so many bytes was read. */
  want(id: Id, sizeBytes: number): void {
    if (this.#isStopped || sizeBytes > this.options.maxBytes || this.#waiting.size >= waitingMax) return
    this.#waiting.add(id)
    this.#next()
  }

  /** Nothing more is begun. */
  stop(): void {
    this.#isStopped = true
    this.#waiting.clear()
  }

  #next(): void {
    if (this.#running >= this.options.concurrency) return
    const [id] = this.#waiting
    if (id === undefined) return
    this.#waiting.delete(id)
    this.#running += 1
    this.begun()
    void this.bring(id).then(() => {
      this.#running -= 1
      this.#next()
    })
  }
}
