import type { Clock } from '../../actor/clock.js'
import { FairSlots, type Release } from '../../actor/fair-slots.js'
import { isRefusal } from '../../format/refusal.js'

/** Items that are read at once: that is what costs this machine. */
const readingMax = 2
/** One item is read for so long, then it waits for its next turn behind others. */
const sliceMs = 500
/** What larger items take of the disk a second time, until they are accepted, is bounded by fewer places. */
const largeBytes = 16 * 1024 * 1024
/** Items that are read or wait for others: for gateways, the payment service, the store. */
const underWayMax = { paid: 64, large: 8, usual: 128 } as const

/** Which of the places an upload takes. `paid`: its money has moved already. */
export type PlaceKind = keyof typeof underWayMax

/** Which places an upload of so many bytes takes. */
export function placeKindOf(isPaid: boolean, bytes: number): PlaceKind {
  if (isPaid) return 'paid'
  return bytes > largeBytes ? 'large' : 'usual'
}

/** The turns of one item that is read. */
export class ReadingTurn {
  #release: Release | undefined
  #sinceMs = 0

  constructor(
    private readonly slots: FairSlots,
    private readonly client: string,
    private readonly clock: Pick<Clock, 'monotonic'>,
  ) {}

  /** Waits until it may be read. */
  async enter(): Promise<void> {
    if (this.#release !== undefined) return
    this.#release = await slotOf(this.slots, this.client)
    this.#sinceMs = this.clock.monotonic()
  }

  /** It is not read now: it is read to its end, or waits for others. */
  leave(): void {
    this.#release?.()
    this.#release = undefined
  }

  /** Lets others have their turns, where this one has lasted long. */
  async pass(): Promise<void> {
    if (this.clock.monotonic() - this.#sinceMs < sliceMs) return
    this.leave()
    await this.enter()
  }
}

/**
 * Places for items that are put together. Few are read at a time, and many more may wait for others meanwhile, so that nobody
 * keeps others from being read by items that wait. Both are shared by networks. What is paid for has places of its own.
 */
export class AssemblyPlaces {
  readonly #underWay: Readonly<Record<PlaceKind, FairSlots>> = {
    paid: FairSlots.unbounded(underWayMax.paid),
    large: FairSlots.unbounded(underWayMax.large),
    usual: FairSlots.unbounded(underWayMax.usual),
  }
  readonly #reading: Readonly<Record<'paid' | 'free', FairSlots>>

  constructor(private readonly clock: Pick<Clock, 'monotonic'>) {
    const options = { max: readingMax, waitingMax: Number.POSITIVE_INFINITY, clock, isBrief: true }
    this.#reading = { paid: new FairSlots(options), free: new FairSlots(options) }
  }

  /** Runs `act` in a place. `network`: whose share it takes. */
  async run<T>(kind: PlaceKind, network: string, act: (turn: ReadingTurn) => Promise<T>): Promise<T> {
    const release = await slotOf(this.#underWay[kind], network)
    const turn = new ReadingTurn(this.#reading[kind === 'paid' ? 'paid' : 'free'], network, this.clock)
    try {
      return await act(turn)
    } finally {
      turn.leave()
      release()
    }
  }
}

/** All may wait: uploads are bounded elsewhere. */
async function slotOf(slots: FairSlots, client: string): Promise<Release> {
  const slot = await slots.wait(client)
  if (isRefusal(slot)) throw new Error(slot.message)
  return slot
}
