import { BoundedMap } from '../../actor/bounded-map.js'
import type { Clock } from '../../actor/clock.js'
import type { Catalog } from '../../catalog/catalog-messages.js'
import type { Id } from '../../format/id.js'

/** When an id that no source knows is answered from memory. */
export interface AbsenceOptions {
  /** Ids watched or remembered; one takes about 300 bytes. The oldest goes first. */
  readonly rememberedMax: number
  /** Questions that found nothing, before an id is remembered as absent... */
  readonly missesMin: number
  /** ...and the time between the first of them and the last. */
  readonly spreadMs: number
  /** How long it is remembered then. Doubles each time it is remembered again. */
  readonly rememberedMs: number
  readonly rememberedMaxMs: number
}

interface Absence {
  misses: number
  firstMs: number
  /** Remembered until then; 0: only watched. */
  untilMs: number
  /** For how long it will be remembered. */
  termMs: number
  /** The generation in the catalog, when the last look-up began. */
  generation: number
}

/** Outcomes that are looked back at, and how many of them may have failed before nobody's word for absence counts. */
const recentMax = 50
const recentMin = 10
const failedShare = 0.8

/**
 * Ids that every source stated it does not know, requested again and again. Only such answers count: a source that failed or was
 * late stated nothing, and where most questions fail a denial may be part of the trouble. What the catalog learns of an id
 * counts at once.
 */
export class Absences {
  readonly #known: BoundedMap<Id, Absence>
  #recent: boolean[] = []

  constructor(
    private readonly options: AbsenceOptions,
    private readonly catalog: Pick<Catalog, 'attributes' | 'generation'>,
    private readonly clock: Clock,
  ) {
    this.#known = new BoundedMap(options.rememberedMax)
  }

  /** Ids held. */
  get size(): number {
    return this.#known.size
  }

  /** For so many milliseconds no source gets a request; 0: one does. */
  leftMs(id: Id): number {
    return this.has(id) ? (this.#known.get(id)?.untilMs ?? 0) - this.clock.monotonic() : 0
  }

  /** True: no source gets a request now. */
  has(id: Id): boolean {
    const absence = this.#known.get(id)
    if (absence === undefined || absence.untilMs <= this.clock.monotonic()) return false
    const generation = this.catalog.generation(id)
    if (generation === absence.generation) return true
    // Something in the id's shard changed: mostly it was another id.
    if (this.catalog.attributes(id) === undefined) {
      absence.generation = generation
      return true
    }
    this.#known.delete(id)
    return false
  }

  /** A question was answered with bytes, or failed. */
  note(id: Id, outcome: 'found' | 'failed'): void {
    this.#look(outcome === 'failed')
    if (outcome === 'found') this.#known.delete(id)
  }

  /** Every source stated that it does not know `id`; `generation` is the catalog's, from before the requests. */
  miss(id: Id, generation: number): void {
    this.#look(false)
    if (this.catalog.attributes(id) !== undefined) return
    const nowMs = this.clock.monotonic()
    const { rememberedMs, rememberedMaxMs, missesMin, spreadMs } = this.options
    const before = this.#known.get(id)
    const absence = before ?? { misses: 0, firstMs: nowMs, untilMs: 0, termMs: rememberedMs, generation }
    absence.generation = generation
    absence.misses += 1
    this.#known.set(id, absence)
    if (absence.misses < missesMin || nowMs - absence.firstMs < spreadMs || this.#isTroubled()) return
    absence.untilMs = nowMs + absence.termMs
    absence.termMs = Math.min(absence.termMs * 2, rememberedMaxMs)
    // The next term is earned anew.
    absence.misses = 0
    absence.firstMs = absence.untilMs
  }

  #look(failed: boolean): void {
    this.#recent.push(failed)
    if (this.#recent.length > recentMax) this.#recent.shift()
  }

  #isTroubled(): boolean {
    const failed = this.#recent.filter((one) => one).length
    return this.#recent.length >= recentMin && failed >= this.#recent.length * failedShare
  }
}
