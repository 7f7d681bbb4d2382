import type { Tip } from '../actor/shared.js'
import type { Attributes } from '../catalog/attributes.js'
import type { Catalog } from '../catalog/catalog-messages.js'
import type { Id } from '../format/id.js'
import { Entry, isStable } from './entry.js'

/** Entries in a row that may be kept without a pass before the iterator is made anew. */
const idleMax = 64

/** Entries that are spared for one that is kept. */
const sparedMax = 256

/** The entries of one thread, within a limit of bytes. Those without a recent request are dropped. */
export class Entries {
  readonly #kept = new Map<Id, Entry>()
  /**
   * Where the last pass stopped. A new iterator would step over everything that was removed since V8 last rebuilt the table
   * (docs/decisions/bounded-maps.md). It is released soon where nothing is dropped, because it keeps old tables of the map and
   * their entries in memory.
   */
  #hand: Iterator<[Id, Entry]> | undefined
  #idle = 0
  #bytes = 0
  /** The generation of the id that the last `get` did not find. */
  absentAt = 0
  readonly #onGrow = (entry: Entry, bytes: number): void => {
    if (this.#kept.get(entry.attributes.id) === entry) this.#bytes += bytes
  }

  constructor(
    private readonly catalog: Pick<Catalog, 'attributes' | 'blobSize' | 'generation'>,
    private readonly pathOf: (digest: Uint8Array) => string,
    private readonly tip: Tip,
    private readonly options: { readonly entriesMaxBytes: number; readonly forkDepth: number },
  ) {}

  /** Memory that all of them take, more or less. */
  get bytes(): number {
    return this.#bytes
  }

  /** The entry of `id` as the catalog knows it now; undefined where it knows nothing. */
  get(id: Id): Entry | undefined {
    const kept = this.#kept.get(id)
    if (kept !== undefined && this.#isFresh(kept, id)) {
      kept.use()
      if (kept.blobPath === undefined) this.#place(kept)
      return kept
    }
    return this.#read(id, kept)
  }

  /** Forgets what was prepared: the next `get` reads the catalog. */
  forget(id: Id): void {
    const kept = this.#kept.get(id)
    if (kept === undefined) return
    this.#kept.delete(id)
    this.#bytes -= kept.bytes
  }

  #isFresh(entry: Entry, id: Id): boolean {
    return (
      entry.generation === this.catalog.generation(id) &&
      entry.stable === isStable(entry.attributes.height, this.tip, this.options.forkDepth)
    )
  }

  #read(id: Id, before: Entry | undefined): Entry | undefined {
    // The generation is read first: a change between the two reads is then noticed at the next request.
    const generation = this.catalog.generation(id)
    const attributes = this.catalog.attributes(id)
    this.forget(id)
    if (attributes === undefined) {
      this.absentAt = generation
      return undefined
    }
    const stable = isStable(attributes.height, this.tip, this.options.forkDepth)
    const entry = new Entry(attributes, generation, stable, this.#onGrow)
    this.#place(entry)
    // The check is about the file, so it stays valid when other attributes of the id change.
    if (before?.entityTag === entry.entityTag) {
      entry.sound = before?.sound
      entry.judged = before?.judged
    }
    this.#keep(entry)
    return entry
  }

  /** An entry of which more is known now, before the catalog knows it. */
  replace(entry: Entry, attributes: Attributes): Entry {
    const fresh = new Entry(attributes, entry.generation, entry.stable, this.#onGrow)
    fresh.blobPath = entry.blobPath
    this.forget(attributes.id)
    this.#keep(fresh)
    return fresh
  }

  #keep(entry: Entry): void {
    this.#kept.set(entry.attributes.id, entry)
    this.#bytes += entry.bytes
    if (this.#bytes > this.options.entriesMaxBytes) this.#trim(entry)
    else if (this.#hand !== undefined && ++this.#idle > idleMax) this.#hand = undefined
  }

  /** Finds the blob in the store. Storing a blob does not change the generation, so this is repeated. */
  #place(entry: Entry): void {
    const { digest } = entry.attributes
    if (digest !== undefined && this.catalog.blobSize(digest) !== undefined)
      entry.blobPath = this.pathOf(digest)
  }

  /**
   * Drops the oldest first, except those with a request since the last pass (second chance). After many of these in a row the
   * next one is dropped anyway, because checking 20,000 takes 10 ms.
   */
  #trim(newest: Entry): void {
    this.#idle = 0
    for (let spared = 0; this.#bytes > this.options.entriesMaxBytes && this.#kept.size > 1; ) {
      this.#hand ??= this.#kept.entries()
      const { done, value } = this.#hand.next()
      if (done === true) {
        this.#hand = undefined
        continue
      }
      const [id, entry] = value
      this.#kept.delete(id)
      if (entry === newest || (entry.isUsed && spared < sparedMax)) {
        spared += 1
        entry.isUsed = false
        this.#kept.set(id, entry)
      } else this.#bytes -= entry.bytes
    }
  }
}
