import type { BorrowedKey } from '../ed25519/ed25519.js'

/**
 * The response cache: answers that the server sends again without JavaScript (response-cache.h). The fallback has none: there
 * every request is JavaScript's.
 */
export interface CacheTable {
  /** The number by which conditions name these numbers. Shared memory. */
  cells(memory: Int32Array): number
  /**
   * The number of a place where answers are counted. `places` in `meters`: as in `count`, then the first bucket of their
   * seconds; `bounds` of the buckets. `kind`: the same for all threads that count the same, from 1 on; absent: nobody else
   * does.
   */
  tally(meters: Float64Array, places: Float64Array, bounds: Float64Array, kind?: number): number
  /**
   * The number of memory that bodies lie in. It must stay where it is until `close` is true. `here`: for each `cellBytes` of it
   * the tick until which they are believed to be in memory; `ticks`: the present tick, and for how many a belief lasts. Both in
   * shared memory. `key`: the same for all threads that have the same bytes, from 1 on; absent: nobody else does.
   */
  region(memory: Uint8Array, here: Int32Array, ticks: Int32Array, cellBytes: number, key?: number): number
  /**
   * No entry out of a region is used any more. False: some are on their way, so its memory must stay, and this is to be
   * called again later. True: its number is given to others.
   */
  close(region: number): boolean
  /** From now on answers are shared with all servers of this process that were given the same shared memory. Only once. */
  share(group: Int32Array): void
  /**
   * From now on heads whose time is over are signed anew with this key, for so many seconds, and answers to GET are given to
   * HEAD, too.
   */
  signs(key: BorrowedKey, reuseSeconds: number): void
  /**
   * From now on answers may have a price. `ip`, `resource`: memory of the tables of buckets; `rules`: as in `rule`; `trusted`,
   * `exempt`: ranges of addresses, four words and the number of bits each; `places` in `meters`: answers that were judged, tokens
   * of clients, tokens of resources. To be called once.
   */
  limits(
    ip: Int32Array,
    resource: Int32Array,
    rules: Float64Array,
    ranges: { readonly trusted: Int32Array; readonly exempt: Int32Array },
    meters: Float64Array,
    places: Float64Array,
  ): void
  /** Other lists in place of those of `limits`, for open connections, too. */
  clients(ranges: { readonly trusted: Int32Array; readonly exempt: Int32Array }): void
  /**
   * Keeps an answer: its numbers as in `number`, its text (host, target, tag, head before and after the id, name to be shown) in
   * the outbox.
   */
  put(numbers: Float64Array, textBytes: number): void
  /** What was sent since the last call, one of some: milliseconds since 1970, bytes of the body, answers since the one before. */
  samples(): [ms: number, bytes: number, count: number, target: string][]
  /** `unfinished`: answers that their clients have not taken whole. */
  usage(): [answers: number, bytes: number, unfinished: number]
}

/**
 * What is counted of an answer: whole or aborted; of the aborted ones why; then bytes of bodies, hits, cached answers, and
 * known names (-1: none).
 */
export const count = {
  whole: 0,
  aborted: 1,
  left: 2,
  stalled: 3,
  broken: 4,
  bytes: 5,
  hits: 6,
  cached: 7,
  names: 8,
  buckets: 9,
} as const

/** The numbers of an answer. */
export const number = {
  variant: 0,
  isHead: 1,
  isStrict: 2,
  hostBytes: 3,
  targetBytes: 4,
  tagBytes: 5,
  beforeBytes: 6,
  afterBytes: 7,
  shownBytes: 8,
  region: 9,
  offset: 10,
  sizeBytes: 11,
  hasBody: 12,
  from: 13,
  until: 14,
  notedCells: 15,
  notedAt: 16,
  notedBit: 17,
  tally: 18,
  price: 19,
  resourceOne: 20,
  resourceTwo: 21,
  conditions: 22,
  first: 23,
} as const

/** What limits make of an answer. */
export const answerPrice = { none: 0, free: 1, tokens: 2 } as const

/** The rules of limits; blocks are those of the table, whose memory has the others. */
export const rule = {
  ipBlocks: 0,
  resourceBlocks: 1,
  ipv6Bits: 2,
  secretLow: 3,
  secretHigh: 4,
  count: 5,
} as const

/** Numbers of a condition: number of the cells, place in them, least and most value. */
export const conditionNumbers = 4
export const conditionsMax = 16
export const answerNumbers: number = number.first + conditionNumbers * conditionsMax

/** Text of one answer at most. */
export const answerTextMax = 32 * 1024
