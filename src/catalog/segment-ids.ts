import { BloomFilter, seenMax } from '../store/bloom-filter.js'
import type { IndexSegments } from './index-segments.js'
import type { FoundInSegment, LiveSegment } from './segment-rows.js'

/** So many ids are looked for in vain before it is worth remembering what there is. */
const missesMax = 20_000

/** Looks for ids in segments, most of which are in none: only the keeper. */
export class SegmentIds {
  /** The ids of these segments, and of some that were merged. */
  #seen: BloomFilter | undefined
  #known = new Set<number>()
  #misses = 0
  /** The segments that were compared with those that are known. */
  #looked: readonly LiveSegment[] | undefined

  constructor(private readonly segments: IndexSegments) {}

  find(id: Uint8Array): FoundInSegment | undefined {
    const live = this.segments.all()
    if (live.length === 0) return undefined
    // Another segment may have other ids, unless it was merged of those that are known: then they are added a second time.
    if (this.#seen !== undefined && live !== this.#looked) {
      if (live.some(({ number }) => !this.#known.has(number))) this.#survey()
      this.#looked = live
    }
    if (this.#seen?.has(firstOf(id), mixed(firstOf(id), restOf(id))) === false) return undefined
    const found = this.segments.find(id)
    if (found !== undefined) return found
    this.#misses += 1
    if (this.#misses > missesMax && this.#seen === undefined) this.#survey()
    return undefined
  }

  /** Segments gave way to a merged one. */
  moved(from: readonly number[], to: number): void {
    if (from.every((number) => this.#known.has(number))) this.#known.add(to)
  }

  /** Remembers the ids of segments that are new. */
  #survey(): void {
    const live = this.segments.all()
    const total = live.reduce((sum, { segment }) => sum + segment.count, 0)
    this.#misses = 0
    if (total > seenMax) {
      this.#seen = undefined
      return
    }
    const isLarge = this.#seen !== undefined && this.#seen.count + total / 2 < this.#seen.capacity
    if (!isLarge) this.#known = new Set()
    const seen = this.#seen !== undefined && isLarge ? this.#seen : new BloomFilter(total * 2)
    for (const { number, segment } of live) {
      if (this.#known.has(number)) continue
      for (const { prefix } of segment.ids.entries()) {
        const first = Math.floor(prefix / 4096)
        seen.add(first | 0, mixed(first | 0, prefix % 4096))
      }
    }
    this.#known = new Set(live.map(({ number }) => number))
    this.#seen = seen
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
