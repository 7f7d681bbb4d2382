import { BoundedMap } from '../../actor/bounded-map.js'
import type { Clock } from '../../actor/clock.js'
import { FairSlots } from '../../actor/fair-slots.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'

/** Questions that begin in one turn of the event loop: some milliseconds of the thread, and questions to a database at a time. */
const underWayMax = 4
/** Questions of all clients that wait. */
const waitingMax = 2000
/** Requests of one client at once, with those that begin. */
const eachMax = 200
/** A question that waits for others for so long does not keep those behind it waiting. */
const heldMs = 25
/** Services send the same token with many requests. */
const tokensMax = 64
const rememberedMs = 60_000

/**
 * The order in which HTTP requests to the payment service begin. A few run at a time, and clients with the fewest recent requests
 * go first. Services of the operator do not wait behind strangers: they are recognized by the token of an earlier request.
 * Messages of other threads (reservations for uploads) do not wait here, because all of them are read between two turns.
 */
export class RequestTurns {
  readonly #slots = new FairSlots({ max: underWayMax, waitingMax, eachMax, isBrief: true })
  /** Authorization headers of services, and until when they are remembered, of the monotonic clock. */
  readonly #services = new BoundedMap<string, number>(tokensMax)

  constructor(private readonly clock: Pick<Clock, 'monotonic' | 'after'>) {}

  /**
   * Resolves when a question may begin, with what is to be called when it is over. Refusals: `busy`, `client` where it is the
   * client's own questions that wait; `late` where it left (`signal`) before its question had begun.
   */
  async begin(
    client: string,
    authorization: string | undefined,
    signal?: AbortSignal,
  ): Promise<(() => void) | Refusal> {
    if (this.#isService(authorization)) return () => undefined
    const slot = await this.#slots.wait(client, signal)
    if (isRefusal(slot)) return slot
    let isNextTurn = false
    let isOver = false
    const release = (): void => {
      if (isNextTurn && isOver) slot()
    }
    // Behind all that the loop reads before: the messages of other threads among it.
    setImmediate(() => {
      isNextTurn = true
      release()
    })
    const end = (): void => {
      isOver = true
      timer.cancel()
      release()
    }
    const timer = this.clock.after(heldMs, end)
    return end
  }

  /** A protected question with this header was not refused for it. It is checked each time all the same. */
  trust(authorization: string | undefined): void {
    if (authorization !== undefined) this.#services.set(authorization, this.clock.monotonic() + rememberedMs)
  }

  #isService(authorization: string | undefined): boolean {
    if (authorization === undefined) return false
    return (this.#services.get(authorization) ?? 0) > this.clock.monotonic()
  }
}
