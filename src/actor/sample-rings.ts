import { isWithin } from './clock.js'

/**
 * Samples of recent events, for the operator's page. Each thread writes samples into its own ring buffer of one shared table,
 * without a lock, and the reader sums all rings. A sample represents all events since the one before it, so the sums are
 * estimates. An event that is not sampled costs one read of the clock. A slot that is read while it is written may mix two texts,
 * which is acceptable for display.
 */
const slots = 1024
const slotBytes = 128
const textMax = slotBytes - 24

/** Two samples of one thread are at least so far apart. */
const gapMs = 20

/** The sum of all samples of one text. */
export interface SampledText {
  readonly text: string
  readonly count: number
  readonly amount: number
  /** Milliseconds of the clock that the writers used. */
  readonly lastMs: number
}

/** Samples of all threads in shared memory: each thread writes a ring of its own, one reader sums them by their texts. */
export class SampleRings {
  readonly #bytes: Buffer
  readonly #start: number
  #next = 0
  #lastMs = Number.NEGATIVE_INFINITY
  #count = 0

  /** Bytes of shared memory for so many threads. */
  static bytesFor(threads: number): number {
    return threads * slots * slotBytes
  }

  /** `row`: this thread's own. */
  constructor(memory: SharedArrayBuffer, row: number) {
    this.#bytes = Buffer.from(memory)
    this.#start = row * slots * slotBytes
    if (this.#start + slots * slotBytes > this.#bytes.length) throw new RangeError(`no row ${row} of samples`)
  }

  /** Counts one event `text` with `amount`. `nowMs`: the same clock on all threads. */
  note(nowMs: number, text: string, amount: number): void {
    this.#count += 1
    if (isWithin(nowMs, this.#lastMs, gapMs)) return
    this.put(nowMs, text, amount, this.#count)
    this.#lastMs = nowMs
    this.#count = 0
  }

  /** Writes a sample that was taken elsewhere, which stands for `count` events. */
  put(ms: number, text: string, amount: number, count: number): void {
    const at = this.#start + this.#next * slotBytes
    this.#bytes.writeDoubleLE(0, at)
    this.#bytes.writeDoubleLE(amount, at + 8)
    this.#bytes.writeUInt32LE(count, at + 16)
    const length = this.#bytes.write(text.slice(0, textMax), at + 24, 'latin1')
    this.#bytes.writeUInt32LE(length, at + 20)
    this.#bytes.writeDoubleLE(ms, at)
    this.#next = (this.#next + 1) % slots
  }

  /** The texts with the largest sums since `sinceMs` on all threads, at most `limit`. */
  top(sinceMs: number, limit: number): SampledText[] {
    const sums = new Map<string, { text: string; count: number; amount: number; lastMs: number }>()
    for (let at = 0; at < this.#bytes.length; at += slotBytes) {
      const ms = this.#bytes.readDoubleLE(at)
      if (ms === 0 || ms < sinceMs) continue
      const length = Math.min(this.#bytes.readUInt32LE(at + 20), textMax)
      const text = this.#bytes.toString('latin1', at + 24, at + 24 + length)
      const weight = this.#bytes.readUInt32LE(at + 16)
      const sum = sums.get(text) ?? { text, count: 0, amount: 0, lastMs: 0 }
      sum.count += weight
      sum.amount += weight * this.#bytes.readDoubleLE(at + 8)
      sum.lastMs = Math.max(sum.lastMs, ms)
      sums.set(text, sum)
    }
    return [...sums.values()].sort((one, other) => other.count - one.count).slice(0, limit)
  }
}
