/** Free bytes that are to be taken of one count. */
export interface FreeWish {
  /** Names the count, of a wallet or a range of addresses. */
  readonly key: string
  readonly bytes: number
  /** What all machines together may give of it. */
  readonly maxBytes: number
}

/** The counts of this machine, what is under way included. */
export interface OwnFreeCounts {
  own(key: string): number
  /** Keys with a count on disk, in their order, behind `after`; so many at most. */
  keysBehind(after: string, limit: number): string[]
}

/** What a look at the counts of the others found. */
export interface FreeVerdict {
  readonly isFree: boolean
  /** Bytes of the other machines together, by key. */
  readonly others: ReadonlyMap<string, number>
}

/** The counts of the other machines of a cluster. */
export interface FreeElsewhere {
  /**
   * Takes what this machine has counted already, all of it or nothing. Undefined: the others do not answer in time, and the
   * counts are given to them later.
   */
  take(wishes: readonly FreeWish[]): Promise<FreeVerdict | undefined>
  /** What the others have given; undefined: they do not answer in time. */
  look(keys: readonly string[]): Promise<ReadonlyMap<string, number> | undefined>
  /** The same for counts that have kept somebody from free bytes: at most now and then; else undefined. */
  lookAgain(keys: readonly string[]): Promise<ReadonlyMap<string, number> | undefined> | undefined
  /** The count of this machine is another one now. */
  changed(keys: readonly string[]): void
}
