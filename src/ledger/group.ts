/** Orders that wait for the store, and are carried out together: one flush for all that came while the last one ran. */
export class GroupCommit<Order, Outcome> {
  #waiting: { order: Order; resolve: (outcome: Outcome) => void; reject: (error: unknown) => void }[] = []
  #isRunning = false
  #idle: (() => void)[] = []

  /**
   * `run` resolves with one outcome for each order, when all are durable. `ordersMax`: of one group. `failureOf`: what one order
   * gets the failure of its group.
   */
  constructor(
    private readonly run: (orders: readonly Order[]) => Promise<readonly Outcome[]>,
    private readonly ordersMax: number,
    private readonly failureOf: (error: unknown, order: Order) => unknown = (error) => error,
  ) {}

  get waiting(): number {
    return this.#waiting.length
  }

  add(order: Order): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ order, resolve, reject })
      if (this.#isRunning) return
      this.#isRunning = true
      // Orders that come in the same turn of the event loop are in the same group.
      setImmediate(() => void this.#work())
    })
  }

  /** Resolves when nothing waits. */
  async drained(): Promise<void> {
    if (this.#isRunning) await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  /** Never rejects: each order gets its own failure. */
  async #work(): Promise<void> {
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, this.ordersMax)
      try {
        const outcomes = await this.run(group.map(({ order }) => order))
        for (const [at, { resolve }] of group.entries()) resolve(outcomes[at] as Outcome)
      } catch (error) {
        for (const { order, reject } of group) reject(this.failureOf(error, order))
      }
    }
    this.#isRunning = false
    for (const resolveIdle of this.#idle.splice(0)) resolveIdle()
  }
}
