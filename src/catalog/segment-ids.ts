import { DamagedSegment } from '../index/checked-file.js'
import type { Segment } from '../index/segment.js'
import { BloomFilter } from '../store/bloom-filter.js'
import type { IndexSegments } from './index-segments.js'
import { type FoundInSegment, findIn, type LiveSegment } from './segment-rows.js'

/** So often a segment is looked into before it is worth remembering what there is. */
const looksMax = 20_000

/** One id in twenty that no segment has looks as if one had it, where the filter is full. */
const bitsEach = 8
/** 64 MiB; half as much more while a filter of half the size gives way to it. */
const bitsMax = 2 ** 29
/** Ids of one filter at most: of more ids, the largest filter excludes too few look-ups to be worth it. */
const idsMax = 2 ** 28

/** The segment whose ids are read. */
interface Reading {
  readonly number: number
  readonly segment: Segment
  readonly prefixes: Iterator<{ readonly prefix: number }>
}

/** A filter that gets the ids of segments, some at a time. */
class Survey {
  readonly filter: BloomFilter
  /** Numbers of segments whose ids it has, or those that they were merged of. */
  readonly known = new Set<number>()
  /** Segments that could not be read: they are looked into each time. */
  readonly #damaged = new Set<number>()
  #reading: Reading | undefined

  constructor(ids: number) {
    this.filter = new BloomFilter(ids, bitsEach, bitsMax)
  }

  /** Adds about so many ids of segments that it does not know. True where it knows all. */
  step(live: readonly LiveSegment[], ids: number): boolean {
    // Where it gave way to another one its file is closed.
    if (!live.some(({ segment }) => segment === this.#reading?.segment)) this.#reading = undefined
    for (let left = ids; left > 0; ) {
      this.#reading ??= this.#next(live)
      if (this.#reading === undefined) return true
      left -= this.#read(this.#reading, left)
    }
    return false
  }

  #next(live: readonly LiveSegment[]): Reading | undefined {
    const next = live.find(({ number }) => !this.known.has(number) && !this.#damaged.has(number))
    return next && { number: next.number, segment: next.segment, prefixes: next.segment.ids.entries() }
  }

  #read({ number, prefixes }: Reading, limit: number): number {
    try {
      for (let read = 0; read < limit; read += 1) {
        const entry = prefixes.next()
        if (entry.done === true) {
          this.known.add(number)
          this.#reading = undefined
          return read + 1
        }
        const first = Math.floor(entry.value.prefix / 4096) | 0
        this.filter.add(first, mixed(first, entry.value.prefix % 4096))
      }
      return limit
    } catch (error) {
      if (!(error instanceof DamagedSegment)) throw error
      this.#damaged.add(number)
      this.#reading = undefined
      return limit
    }
  }
}

/** Looks for ids in segments, most of which are in none: only the keeper. */
export class SegmentIds {
  #survey: Survey | undefined
  /** A larger one, which takes its place when it knows as much. */
  #larger: Survey | undefined
  #looks = 0
  /** The segments when all of them were known. */
  #known: readonly LiveSegment[] | undefined

  constructor(private readonly segments: IndexSegments) {}

  /** The row with this id (32 bytes). */
  find(id: Uint8Array): FoundInSegment | undefined {
    const live = this.segments.all()
    const survey = this.#survey
    if (survey === undefined) this.#looks += live.length
    const first = firstOf(id)
    const mayBeThere = survey?.filter.has(first, mixed(first, restOf(id))) !== false
    if (!mayBeThere && this.#known === live) return undefined
    if (mayBeThere) return this.segments.find(id)
    for (let at = live.length - 1; at >= 0; at -= 1) {
      const one = live[at] as LiveSegment
      if (survey?.known.has(one.number) === true) continue
      const row = findIn(one, id)
      if (row >= 0) return { live: one, row }
    }
    if (live.every(({ number }) => survey?.known.has(number) === true)) this.#known = live
    return undefined
  }

  /** Segments gave way to others, which have no other rows. */
  moved(from: readonly number[], to: readonly number[]): void {
    for (const survey of [this.#survey, this.#larger]) {
      if (survey === undefined || !from.every((number) => survey.known.has(number))) continue
      for (const number of to) survey.known.add(number)
    }
  }

  /** Undefined where a file is missing: what needs it says so. */
  #listed(): readonly LiveSegment[] | undefined {
    try {
      return this.segments.all()
    } catch (error) {
      if (error instanceof DamagedSegment) return undefined
      throw error
    }
  }

  /** Goes on with remembering what there is, by about so many ids. */
  tend(ids: number): void {
    if (this.#survey === undefined && this.#looks <= looksMax) return
    const live = this.#listed()
    if (live === undefined) return
    const total = live.reduce((sum, { segment }) => sum + segment.count, 0)
    if (total > idsMax) {
      this.#known = undefined
      this.#survey = undefined
      this.#larger = undefined
      return
    }
    const needed = live.reduce(
      (sum, { number, segment }) => sum + (this.#survey?.known.has(number) === true ? 0 : segment.count),
      this.#survey?.filter.count ?? 0,
    )
    if (this.#survey === undefined) this.#survey = new Survey(total * 2)
    else if (needed > this.#survey.filter.capacity && !this.#survey.filter.isLargest) {
      this.#larger ??= new Survey(total * 2)
    }
    const larger = this.#larger
    if (larger === undefined) this.#survey.step(live, ids)
    else if (larger.step(live, ids)) {
      this.#survey = larger
      this.#larger = undefined
      this.#known = undefined
    }
  }
}

function firstOf(id: Uint8Array): number {
  return ((id[0] as number) << 24) | ((id[1] as number) << 16) | ((id[2] as number) << 8) | (id[3] as number)
}

/** The next twelve bits. */
function restOf(id: Uint8Array): number {
  return ((id[4] as number) << 4) | ((id[5] as number) >> 4)
}

/** A number that is spread as evenly as the first one, and depends on all 44 bits. */
function mixed(first: number, rest: number): number {
  let mix = Math.imul(first ^ Math.imul(rest + 1, 0x9e3779b1), 0x85ebca6b)
  mix ^= mix >>> 13
  mix = Math.imul(mix, 0xc2b2ae35)
  return mix ^ (mix >>> 16)
}
