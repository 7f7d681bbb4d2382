import type { Clock } from '../../actor/clock.js'
import type { DataSeen, DataWish, DataWitnesses } from '../../chain/data-witnesses.js'
import { decodeBase64url } from '../../format/base64url.js'
import { chunkSizeMax } from '../../format/chunk.js'
import type { Id } from '../../format/id.js'
import { refuse } from '../../format/refusal.js'
import type { BundleRecord } from './bundle-records.js'

/** Chunks that are read of one bundle. */
const readsMax = 64
/** Bundles whose data is read at once; each takes the memory of one chunk. */
const looksMax = 4
/** After so long a look is given up: the nodes count as silent. */
const lookMaxMs = 300_000
/** The longest pause between two looks at a bundle whose data nobody showed. */
export const unseenMaxMs = 3_600_000

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
 * Whether nodes show the data of bundles, as they show it to everybody: with proofs, and where several are configured first of
 * those that did not take it from here. Looks go on beside the rounds of the bundler, because nodes may be slow.
 */
export class ReadBack {
  readonly #looks = new Map<Id, { seen?: DataSeen }>()
  readonly #running = new Set<Promise<void>>()
  readonly #abort = new AbortController()

  constructor(private readonly parts: ReadBackParts) {}

  async close(): Promise<void> {
    this.#abort.abort()
    await Promise.all(this.#running)
  }

  /** What a look at this bundle has shown, once. Undefined: one is under way from now on, or as soon as others are over. */
  outcome(bundle: BundleRecord): DataSeen | undefined {
    const { id } = bundle
    const look = this.#looks.get(id)
    if (look?.seen !== undefined) this.#looks.delete(id)
    else if (look === undefined && this.#running.size < looksMax) this.#begin(bundle)
    return look?.seen
  }

  /** Nobody is going to request its outcome. */
  forget(id: Id): void {
    this.#looks.delete(id)
  }

  #begin(bundle: BundleRecord): void {
    const look: { seen?: DataSeen } = {}
    this.#looks.set(bundle.id, look)
    const running = this.#look(bundle)
      // The record of the bundle has it as its reason, and the next look comes later.
      .catch((error: unknown) => refuse('upstream', 'self', String(error)))
      .then((seen) => {
        look.seen = seen
        this.#running.delete(running)
      })
    this.#running.add(running)
  }

  async #look({ id, transaction, sizeBytes, takenBy = [] }: BundleRecord): Promise<DataSeen> {
    const { witnesses, clock, random = Math.random } = this.parts
    const dataRoot = decodeBase64url((transaction as { readonly data_root: string }).data_root)
    if (dataRoot === undefined) throw new Error(`the record of the bundle ${id} has no data root`)
    const offsets = readBackOffsets(sizeBytes, random)
    const wish: DataWish = { id, dataRoot, sizeBytes, offsets, last: new Set(takenBy) }
    const late = new AbortController()
    const timer = clock.after(lookMaxMs, () => late.abort())
    const seen = await witnesses.look(wish, AbortSignal.any([this.#abort.signal, late.signal]))
    timer.cancel()
    return seen
  }
}
