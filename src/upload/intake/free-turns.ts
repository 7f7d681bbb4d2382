import type { Clock } from '../../actor/clock.js'
import { FairSlots, type Release } from '../../actor/fair-slots.js'
import type { ItemHeader } from '../../format/item.js'
import { isRefusal } from '../../format/refusal.js'
import { freeUserOf } from '../charging/charging.js'
import type { FreePools } from '../records/free-pools.js'
import { textAnswer, type UploadAnswer } from '../requests/upload-answers.js'
import type { Uploader } from '../requests/uploader.js'
import { rankOf } from './signing.js'

/** A receipt for nothing is waited for so long at most. */
const waitMs = 2000
/** Receipts for nothing that one thread has to sign: the next of its tasks must be there when one is over. */
const ofThread = 8
/** Items that may wait, of all requests that may be under way: others must find places. */
const waitingPart = 8

const crowded = textAnswer(
  503,
  'Too many free uploads wait for their receipts: try again, or pay',
  '\r\nRetry-After: 5',
)

/**
 * Turns of items that nobody pays for to have their receipts signed: one signature takes some milliseconds of a core, and such
 * items cost nothing. Providers have turns, of one its networks, and of one its clients (`FairLine`). Where the line is full, who
 * has most in it makes room.
 */
export class FreeTurns {
  readonly #slots: FairSlots

  /** `threads`: that sign. `requestsMax`: requests that may be under way. */
  constructor(
    private readonly pools: Pick<FreePools, 'reservable'>,
    { threads, requestsMax }: { readonly threads: number; readonly requestsMax: number },
    private readonly clock: Clock,
  ) {
    const waitingMax = Math.max(1, Math.floor(requestsMax / waitingPart))
    this.#slots = new FairSlots({ max: threads * ofThread, waitingMax, isBrief: true })
  }

  /** The refusal of an item that would be free, before its bytes are read; undefined: it would have a turn, or is paid for. */
  crowded(header: ItemHeader, sizeBytes: number, uploader: Uploader): UploadAnswer | undefined {
    if (this.#slots.hasRoom(uploader.address)) return undefined
    const free = this.pools.reservable(freeUserOf(header, uploader), sizeBytes)
    return rankOf(free) === 'free' ? crowded : undefined
  }

  /** Waits. The turn is to be released when the receipt is signed. */
  async turn({ address }: Pick<Uploader, 'address'>): Promise<Release | UploadAnswer> {
    const turn = await this.#slots.waitFor(address, waitMs, this.clock)
    return isRefusal(turn) ? crowded : turn
  }
}
