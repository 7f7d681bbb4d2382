import type { Clock } from '../../actor/clock.js'

/** Why nothing is put for now: enough in this day, or enough for good. */
export type PutLimit = 'daily limit' | 'size limit'

export interface PutBudgetOptions {
  /** Bytes a day. */
  readonly dailyBytes: number
  /** Bytes in all. */
  readonly maxBytes: number
}

/** What was put so far, as it is kept over a restart. */
export interface PutCount {
  /** In all. */
  readonly bytes: number
  /** Bytes of the last day: the number falls by `dailyBytes` a day. */
  readonly dayBytes: number
  /** When `dayBytes` was so, in ms since 1970. */
  readonly atMs: number
}

const dayMs = 86_400_000

/**
 * Bounds what this gateway puts into the object store. Requests of strangers decide what is verified: without a bound they decide
 * how much the operator stores and pays for.
 */
export class PutBudget {
  #count: PutCount
  /** Bytes of what is being put. */
  #underWay = 0

  constructor(
    private readonly options: PutBudgetOptions,
    private readonly clock: Clock,
    known: PutCount | undefined,
  ) {
    this.#count = known ?? { bytes: 0, dayBytes: 0, atMs: clock.now() }
  }

  /** Undefined: more may be put. One object may exceed the bound. What is being put counts, too. */
  get limit(): PutLimit | undefined {
    if (this.#count.bytes + this.#underWay >= this.options.maxBytes) return 'size limit'
    return this.#dayBytes() + this.#underWay >= this.options.dailyBytes ? 'daily limit' : undefined
  }

  /** So many bytes begin to be put. Call the result when that is over. */
  begin(bytes: number): () => void {
    this.#underWay += bytes
    return () => {
      this.#underWay -= bytes
    }
  }

  /** The count when so many bytes more were put. */
  spend(bytes: number): PutCount {
    const dayBytes = this.#dayBytes() + bytes
    this.#count = { bytes: this.#count.bytes + bytes, dayBytes, atMs: this.clock.now() }
    return this.#count
  }

  #dayBytes(): number {
    const { dayBytes, atMs } = this.#count
    // A clock that was set back gives nothing back.
    const passedMs = Math.max(0, this.clock.now() - atMs)
    return Math.max(0, dayBytes - (passedMs / dayMs) * this.options.dailyBytes)
  }
}
