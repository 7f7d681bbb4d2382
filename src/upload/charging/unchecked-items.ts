import { BoundedMap } from '../../actor/bounded-map.js'
import type { Clock } from '../../actor/clock.js'

/** What may be taken unchecked in a burst, and in each hour after it: an item counts as one unit for each begun MiB. */
const unitsMax = 256
const unitBytes = 2 ** 20
/** Units that a new item gives back: who uploads more than gateways answer has one of so many items looked up. */
const unitsEach = 4
/** So many can be given back before they are used. They are lost again as fast as used ones come back. */
const earnedMax = 1024
/** Pairs of wallet and network that are remembered. One that was forgotten may have a burst again. */
const pairsMax = 4096

interface Used {
  /** Less than 0: earned. */
  units: number
  atMs: number
}

/**
 * Bounds the items that are taken though nobody has stated whether they are new, for each wallet and network. A stranger in the
 * network of an owner can bring about that nobody states it, and then has the owner pay for so much an hour.
 */
export class UncheckedItems {
  readonly #used = new BoundedMap<string, Used>(pairsMax)

  constructor(private readonly clock: Pick<Clock, 'monotonic'>) {}

  /**
   * Whether an item of so many bytes may be taken; counts it. `isEarned`: only within what items of the pair have earned that
   * were looked up lately.
   */
  take(pair: string, bytes: number, isEarned: boolean): boolean {
    const units = Math.max(1, Math.ceil(bytes / unitBytes))
    const used = this.#leaked(pair)
    if (used.units + units > (isEarned ? 0 : unitsMax)) return false
    used.units += units
    this.#used.set(pair, used)
    return true
  }

  /** Notes that an item of the pair was looked up, and is new: it earns units. */
  noteNew(pair: string): void {
    const used = this.#leaked(pair)
    used.units = Math.max(-earnedMax, used.units - unitsEach)
    this.#used.set(pair, used)
  }

  #leaked(pair: string): Used {
    const nowMs = this.clock.monotonic()
    const { units, atMs } = this.#used.get(pair) ?? { units: 0, atMs: nowMs }
    const leaked = ((nowMs - atMs) / 3_600_000) * unitsMax
    return { units: Math.sign(units) * Math.max(0, Math.abs(units) - leaked), atMs: nowMs }
  }
}
