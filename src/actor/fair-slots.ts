import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { Clock } from './clock.js'
import { FairLine, type Full, type LineParty } from './fair-line.js'
import { HoldingRule } from './holding-rule.js'
import { type AnySignal, LazySignal } from './lazy-signal.js'

/** Gives a slot back; calling it again does nothing. */
export type Release = () => void

export interface SlotOptions {
  /** Slots held at once by all clients together. */
  readonly max: number
  /** Callers that may wait for a slot; absent: none. */
  readonly waitingMax?: number
  /** Places of one client, held and waiting together. Absent: as many as all. */
  readonly eachMax?: number
  /** A client is charged the milliseconds that it holds a slot, too. Absent: one for each slot. */
  readonly clock?: Pick<Clock, 'monotonic'>
  /** Whatever clients do, each slot is given back in a moment: turns are enough, and one client may hold all. */
  readonly isBrief?: boolean
}

/** One that waits. */
interface Call {
  /** A slot is taken for it. */
  taken(): void
  /** It had to make room for a client with fewer calls. */
  refused(): void
}

/** The refusal for a caller whose own signal fired. */
export const gaveUp: Refusal = refuse('late', 'client', 'the caller gave up')
const late = refuse('late', 'self', 'the question has waited for too long')

const busy: Readonly<Record<Full, Refusal>> = {
  all: refuse('busy', 'self', 'too many wait for the same thing'),
  client: refuse('busy', 'client', 'too many of one client wait for the same thing'),
}

/**
 * A semaphore with a share for each client and a bounded fair queue. A released slot goes to the client that has used
 * least (see `FairLine`), and to the first of its calls. What one client, its network and its provider hold is bounded, too
 * (`HoldingRule`): turns alone would let a client have all slots whose calls last for minutes. Who holds that much waits.
 *
 * Calls without a client's name are this program's own: they are served in order of arrival, and may hold all.
 */
export class FairSlots {
  readonly #max: number
  readonly #line: FairLine<Call>
  readonly #clock: Pick<Clock, 'monotonic'> | undefined
  readonly #rule: HoldingRule | undefined
  #taken = 0

  constructor({
    max,
    waitingMax = 0,
    eachMax = Number.POSITIVE_INFINITY,
    clock,
    isBrief = false,
  }: SlotOptions) {
    this.#max = max
    // Who waits has turns, so fewer slots are kept than where nobody waits (`FreeShares`).
    this.#rule = isBrief ? undefined : new HoldingRule(max, (max * 3) / 4)
    this.#clock = clock
    this.#line = new FairLine(max + waitingMax, eachMax, ({ refused }) => refused())
  }

  /** Slots for callers whose number is bounded elsewhere: all of them may wait. */
  static unbounded(max: number): FairSlots {
    return new FairSlots({ max, waitingMax: Number.POSITIVE_INFINITY })
  }

  /** Slots held now. */
  get taken(): number {
    return this.#taken
  }

  /** Whether this client has to wait for a slot now. */
  isFull(client = ''): boolean {
    return this.#taken >= this.#max || this.#isAtShare(client)
  }

  /** Whether one more call of this client would have a slot, or could wait for one. */
  hasRoom(client = ''): boolean {
    return this.#line.hasRoom(client)
  }

  /** A slot at once, or why there is none. */
  take(client = ''): Release | Full {
    const full = this.#line.full(client)
    if (full === 'client' || this.#taken >= this.#max) return full ?? 'all'
    return this.#isAtShare(client) ? 'client' : this.force(client)
  }

  /** Waits for a slot. Refusals: `busy` (the line or the client's share of it is full), `late` (the signal fired first). */
  async wait(client = '', signal?: AnySignal): Promise<Release | Refusal> {
    if (signal?.aborted === true) return gaveUp
    const slot = this.take(client)
    if (typeof slot !== 'string') return slot
    return new Promise((resolve) => {
      const over = (outcome: Release | Refusal): void => {
        signal?.removeEventListener('abort', left)
        resolve(outcome)
      }
      const call: Call = { taken: () => over(this.#release(client)), refused: () => over(busy.client) }
      const left = (): void => {
        if (this.#line.remove(client, call)) resolve(gaveUp)
      }
      const full = this.#line.add(client, call)
      if (full === undefined) signal?.addEventListener('abort', left)
      else resolve(busy[full])
    })
  }

  /** The same, for so many milliseconds at most; then the refusal `late`, as where the signal fired first. */
  async waitFor(
    client: string | undefined,
    patienceMs: number,
    clock: Pick<Clock, 'after'>,
    signal?: AnySignal,
  ): Promise<Release | Refusal> {
    const slot = this.take(client)
    if (typeof slot !== 'string') return slot
    const over = new LazySignal()
    const timer = clock.after(patienceMs, () => over.abort())
    const leave = signal && over.follow(signal)
    const waited = await this.wait(client, over)
    leave?.()
    timer.cancel()
    return over.aborted && isRefusal(waited) ? late : waited
  }

  /** Runs `act` in a slot, where all may wait. What `act` throws is thrown on. */
  async run<T>(act: () => Promise<T>, client = ''): Promise<T> {
    const slot = await this.wait(client)
    if (isRefusal(slot)) throw new Error(slot.message)
    try {
      return await act()
    } finally {
      slot()
    }
  }

  /** Takes a slot even where none is free, for work that has begun already and can only be counted. */
  force(client = ''): Release {
    this.#line.open(client)
    this.#line.charge(client, 1)
    this.#taken += 1
    return this.#release(client)
  }

  /** Whether the client, its network or its provider may hold no more now. */
  #isAtShare(client: string): boolean {
    if (client === '' || this.#rule === undefined) return false
    for (const party of this.#line.partiesIn(client)) if (this.#hasShare(party)) return true
    return false
  }

  readonly #hasShare = ({ level, name, open }: LineParty): boolean =>
    name !== '' && this.#rule?.isFull(level, open, this.#taken) === true

  #release(client: string): Release {
    let isHeld = true
    const sinceMs = this.#clock?.monotonic()
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#taken -= 1
      if (this.#clock !== undefined && sinceMs !== undefined)
        this.#line.charge(client, this.#clock.monotonic() - sinceMs)
      this.#line.over(client)
      while (this.#taken < this.#max) {
        const next = this.#line.take(this.#hasShare)
        if (next === undefined) return
        this.#line.charge(next.client, 1)
        this.#taken += 1
        next.job.taken()
      }
    }
  }
}
