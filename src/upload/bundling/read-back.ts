import type { Clock } from '../../actor/clock.js'
import type { DataWish, DataWitnesses } from '../../chain/data-witnesses.js'
import { decodeBase64url } from '../../format/base64url.js'
import { chunkSizeMax } from '../../format/chunk.js'
import type { Id } from '../../format/id.js'
import { type Refusal, refuse } from '../../format/refusal.js'
import type { BundleRecord } from './bundle-records.js'

/** Chunks that are read of one bundle. */
const readsMax = 64
/** Bundles whose data is read at once; each takes the memory of one chunk. */
const looksMax = 4
/** Bundles among these that were looked at in vain: others do not wait for them. */
const looksAgainMax = 2
/** After so long a look pauses, and others have their turns. */
const lookMaxMs = 300_000
/** Bundles of which it is kept what was seen. */
const sightsMax = 1024
const tooSlow = refuse('late', 'self', 'nodes are too slow to show its data')
/** What all but silent nodes deny is missing after so many looks in a row, over so long: nodes are started anew meanwhile. */
const [doubtsMin, doubtMs] = [3, 300_000] as const
const doubted = refuse('upstream', 'upstream', 'nodes deny some of its data, and others do not answer')
/** The longest pause between two looks at a bundle whose data nobody showed. */
export const unseenMaxMs = 6 * 3_600_000

/** How long after `times` looks that found nothing the next one is, where a usual pause is `lookMs`. */
export function unseenWaitMs(times: number, lookMs: number): number {
  return times === 0 ? 0 : Math.min(lookMs * 2 ** Math.min(times, 30), unseenMaxMs)
}

/**
 * One position in each chunk that is to be read back: of data of up to 64 chunks (16 MiB) in every one, of larger data in the
 * first and the last one and in 62 others at random. Where a twentieth of the chunks is missing, 62 of them show it 96 times in
 * 100. `random`: from 0 to below 1.
 */
export function readBackOffsets(sizeBytes: number, random: () => number): number[] {
  const chunks = Math.ceil(sizeBytes / chunkSizeMax)
  const ends = chunks > 1 ? [0, chunks - 1] : [0]
  const wanted = new Set(chunks <= readsMax ? Array.from({ length: chunks }, (_, at) => at) : ends)
  while (wanted.size < Math.min(readsMax, chunks)) wanted.add(Math.floor(random() * chunks))
  // The last two chunks share what is left between them, so that the last byte names the last one for certain.
  return [...wanted].map((at) => (at === chunks - 1 ? sizeBytes - 1 : at * chunkSizeMax))
}

export interface ReadBackParts {
  readonly witnesses: Pick<DataWitnesses, 'look'>
  readonly clock: Clock
  readonly random?: () => number
}

/**
 * What nodes have shown of the data of a bundle. `missing`: the numbers of chunks that nobody shows; undefined: it is not known
 * which, because not all were read. A refusal: nodes did not answer.
 */
export type ShownData = 'seen' | { readonly missing: readonly number[] | undefined } | Refusal

/** What is known of one bundle. */
interface Sight {
  readonly sizeBytes: number
  /** Positions that are neither seen nor missing. */
  left: readonly number[]
  missing: number[]
  /** Looks in a row at which all the rest was doubtful, and when that began. */
  doubts: { readonly sinceMs: number; readonly looks: number } | undefined
  isRunning: boolean
  /** What the last look has shown, until it is taken. */
  outcome: ShownData | undefined
}

/**
 * Whether nodes show the data of bundles, as they show it to everybody: with proofs, and where several are configured first of
 * those that did not take it from here. Looks go on beside the rounds of the bundler, because nodes may be slow. What was seen is
 * kept, and the next look goes on with the rest.
 */
export class ReadBack {
  /** The longest known first. */
  readonly #sights = new Map<Id, Sight>()
  readonly #running = new Set<Promise<void>>()
  #again = 0
  readonly #abort = new AbortController()

  constructor(private readonly parts: ReadBackParts) {}

  async close(): Promise<void> {
    this.#abort.abort()
    await Promise.all(this.#running)
  }

  /** What a look at this bundle has shown, once. Undefined: one is under way from now on, or as soon as others are over. */
  outcome(bundle: BundleRecord): ShownData | undefined {
    const sight = this.#sights.get(bundle.id)
    const outcome = sight?.outcome
    if (sight === undefined || outcome === undefined) {
      if (sight?.isRunning !== true) this.#begin(bundle, sight)
      return undefined
    }
    sight.outcome = undefined
    if (outcome === 'seen' || 'missing' in outcome) this.#decided(bundle.id, sight)
    return outcome
  }

  /** Nobody is going to request its outcome. */
  forget(id: Id): void {
    this.#sights.delete(id)
  }

  /** Where all chunks are read, only those that were missing are to be looked at again; else the next look takes others. */
  #decided(id: Id, sight: Sight): void {
    this.#sights.delete(id)
    const isWhole = sight.sizeBytes <= readsMax * chunkSizeMax
    if (!isWhole || sight.missing.length === 0) return
    this.#keep(id, { ...sight, left: sight.missing, missing: [], doubts: undefined })
  }

  #keep(id: Id, sight: Sight): void {
    this.#sights.set(id, sight)
    for (const [other, { isRunning }] of this.#sights) {
      if (this.#sights.size <= sightsMax) return
      if (!isRunning && other !== id) this.#sights.delete(other)
    }
  }

  #begin(bundle: BundleRecord, known: Sight | undefined): void {
    const isAgain = bundle.unshown !== undefined
    if (this.#running.size >= looksMax || (isAgain && this.#again >= looksAgainMax)) return
    const { random = Math.random } = this.parts
    const { id, sizeBytes } = bundle
    const sight = known ?? {
      sizeBytes,
      left: readBackOffsets(sizeBytes, random),
      missing: [],
      doubts: undefined,
      isRunning: false,
      outcome: undefined,
    }
    sight.isRunning = true
    this.#keep(id, sight)
    if (isAgain) this.#again += 1
    const running = this.#look(bundle, sight)
      // The record of the bundle has it as its reason, and the next look comes later.
      .catch((error: unknown) => refuse('upstream', 'self', String(error)))
      .then((outcome) => {
        sight.outcome = outcome
        sight.isRunning = false
        if (isAgain) this.#again -= 1
        this.#running.delete(running)
      })
    this.#running.add(running)
  }

  /** Undefined: some was seen, and the next look goes on at once. */
  async #look(bundle: BundleRecord, sight: Sight): Promise<ShownData | undefined> {
    const { witnesses, clock } = this.parts
    const { id, transaction, sizeBytes, takenBy = [] } = bundle
    const dataRoot = decodeBase64url((transaction as { readonly data_root: string }).data_root)
    if (dataRoot === undefined) throw new Error(`the record of the bundle ${id} has no data root`)
    const wish: DataWish = { id, dataRoot, sizeBytes, offsets: sight.left, last: new Set(takenBy) }
    const late = new AbortController()
    const timer = clock.after(lookMaxMs, () => late.abort())
    const {
      seen,
      missing,
      doubtful = [],
      refusal,
    } = await witnesses.look(wish, AbortSignal.any([this.#abort.signal, late.signal]))
    timer.cancel()
    const decided = new Set([...seen, ...missing])
    sight.left = sight.left.filter((offset) => !decided.has(offset))
    sight.missing.push(...missing)
    if (this.#isLasting(sight, doubtful)) {
      sight.missing.push(...sight.left)
      sight.left = []
    }
    if (sight.left.length > 0) {
      if (decided.size > 0) return undefined
      // Nodes may fail for one chunk alone.
      sight.left = [...sight.left.slice(1), ...sight.left.slice(0, 1)]
      return refusal ?? (doubtful.length > 0 ? doubted : tooSlow)
    }
    if (sight.missing.length === 0) return 'seen'
    const isWhole = sizeBytes <= readsMax * chunkSizeMax
    return { missing: isWhole ? sight.missing.map((at) => Math.floor(at / chunkSizeMax)) : undefined }
  }

  /** Whether all that is left has been doubtful for long enough. */
  #isLasting(sight: Sight, doubtful: readonly number[]): boolean {
    if (doubtful.length === 0 || doubtful.length < sight.left.length) {
      sight.doubts = undefined
      return false
    }
    const nowMs = this.parts.clock.monotonic()
    const { sinceMs, looks } = sight.doubts ?? { sinceMs: nowMs, looks: 0 }
    sight.doubts = { sinceMs, looks: looks + 1 }
    return looks + 1 >= doubtsMin && nowMs - sinceMs >= doubtMs
  }
}
