import { compareRowKeys, rowKeyBytes } from './row-key.js'

const kinds = 8

/** Row keys that are collected for one prefix: where each begins among all that were collected. */
export interface PostingList {
  readonly prefix: number
  /** Nothing was ever posted under the prefix. */
  readonly isFresh: boolean
  readonly rows: number[]
  /** The round in which it is collected: a list of an earlier one is written already. */
  readonly round: number
}

/** Collects row keys by prefix until they are written. Most lists stay short, most of the others are in order. */
export class PostingLists {
  /** Lists that were begun since this counts are still collected. */
  round = 0
  /** A map for each kind: small whole numbers are far quicker keys than whole prefixes. */
  readonly #kinds = Array.from({ length: kinds }, () => new Map<number, PostingList>())
  #keys = Buffer.allocUnsafeSlow(1024 * rowKeyBytes)
  #keyBytes = 0
  #size = 0

  get isEmpty(): boolean {
    return this.#size === 0
  }

  /** The list for a prefix, which is `isFresh` where its word was given its number just now. */
  list(prefix: number, isFresh = false): PostingList {
    const kind = Math.floor(prefix / 2 ** 40)
    const word = prefix - kind * 2 ** 40
    const lists = this.#kinds[kind] as Map<number, PostingList>
    const known = lists.get(word)
    if (known !== undefined) return known
    const list = { prefix, isFresh, rows: [], round: this.round }
    lists.set(word, list)
    this.#size += 1
    return list
  }

  /** Keeps a row key for the lists that it is added to: where it begins. */
  key(row: Uint8Array): number {
    const at = this.#keyBytes
    if (at === this.#keys.length) {
      const larger = Buffer.allocUnsafeSlow(at * 2)
      this.#keys.copy(larger, 0, 0, at)
      this.#keys = larger
    }
    for (let byte = 0; byte < rowKeyBytes; byte += 1) this.#keys[at + byte] = row[byte] as number
    this.#keyBytes += rowKeyBytes
    return at
  }

  /** Every list in the order of prefixes. */
  *inOrder(): Generator<PostingList> {
    for (const lists of this.#kinds) {
      const sorted = Float64Array.from(lists.keys()).sort()
      for (const word of sorted) yield lists.get(word) as PostingList
    }
  }

  /** Copies the row keys of a list, in chain order and each once, to the start of `into`: how many. */
  copy({ rows }: PostingList, into: Uint8Array): number {
    const keys = this.#keys
    if (!this.#isSorted(rows)) rows.sort((one, other) => compareRowKeys(keys, one, keys, other))
    let to = 0
    let before = -1
    for (const at of rows) {
      if (before >= 0 && compareRowKeys(keys, before, keys, at) === 0) continue
      for (let byte = 0; byte < rowKeyBytes; byte += 1) into[to + byte] = keys[at + byte] as number
      to += rowKeyBytes
      before = at
    }
    return to / rowKeyBytes
  }

  #isSorted(rows: readonly number[]): boolean {
    for (let at = 1; at < rows.length; at += 1) {
      if (compareRowKeys(this.#keys, rows[at - 1] as number, this.#keys, rows[at] as number) > 0) return false
    }
    return true
  }

  /** All lists are written: begins anew. */
  clear(): void {
    for (const lists of this.#kinds) lists.clear()
    this.#keyBytes = 0
    this.#size = 0
    this.round += 1
  }
}
