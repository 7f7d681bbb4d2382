import type { SourceProgress } from '../source-messages.js'

/** Bytes of one slot: readable f64-exact u64, state i32, waiting i32. */
const slotBytes = 16

/** How far a file has come. Free slots are nobody's. */
export type SlotState = 'free' | 'growing' | 'whole' | 'broken'

const states: readonly SlotState[] = ['free', 'growing', 'whole', 'broken']

/** Bytes of shared memory for a progress table of so many slots. */
export function progressBytes(slots: number): number {
  return slots * slotBytes
}

/**
 * How far each growing file has come, in shared memory: the fetcher writes, edge threads read. A reader that has to wait
 * raises a flag and looks once more; the fetcher moves first and looks at the flag afterwards. So a wake-up is never lost,
 * and none is sent to where nobody waits.
 */
export class ProgressTable {
  readonly #readable: BigInt64Array
  readonly #cells: Int32Array

  /** `memory`: `progressBytes` bytes. */
  constructor(readonly memory: SharedArrayBuffer) {
    this.#readable = new BigInt64Array(memory)
    this.#cells = new Int32Array(memory)
  }

  get slots(): number {
    return this.memory.byteLength / slotBytes
  }

  readable(slot: number): number {
    return Number(Atomics.load(this.#readable, slot * 2))
  }

  state(slot: number): SlotState {
    return states[Atomics.load(this.#cells, slot * 4 + 2)] ?? 'broken'
  }

  /** Fetcher only. True: a reader waits for this slot and must be notified. */
  move(slot: number, readable: number, state: SlotState): boolean {
    Atomics.store(this.#readable, slot * 2, BigInt(readable))
    Atomics.store(this.#cells, slot * 4 + 2, states.indexOf(state))
    return Atomics.exchange(this.#cells, slot * 4 + 3, 0) === 1
  }

  /** Readers: raise the flag before looking a last time and waiting. */
  await(slot: number): void {
    Atomics.store(this.#cells, slot * 4 + 3, 1)
  }
}

/** The readers' side on one thread: who waits for which slot. */
export class ProgressReader {
  readonly #waiting = new Map<number, Set<() => void>>()

  constructor(readonly table: ProgressTable) {}

  /** Give this to `addressOf` as the hearer of the fetcher's events. */
  readonly hear = (event: SourceProgress): void => {
    for (const slot of event.slots) {
      const woken = this.#waiting.get(slot)
      if (woken === undefined) continue
      this.#waiting.delete(slot)
      for (const wake of woken) wake()
    }
  }

  /** Calls `wake` at the next event of `slot`; returns how to stop waiting. */
  wait(slot: number, wake: () => void): () => void {
    const waiting = this.#waiting.get(slot) ?? new Set()
    waiting.add(wake)
    this.#waiting.set(slot, waiting)
    return () => {
      waiting.delete(wake)
      if (waiting.size === 0 && this.#waiting.get(slot) === waiting) this.#waiting.delete(slot)
    }
  }
}
