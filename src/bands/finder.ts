import type { Log } from '../actor/log.js'
import type { Meters } from '../actor/meter.js'
import { type Id, idBytes, idOfBytes } from '../format/id.js'
import { isRefusal } from '../format/refusal.js'
import type { Hints } from '../source/source-messages.js'
import { RemoteIndex, readIndexSource, type SourceParts } from './index-sources.js'
import { LocalBands } from './local-bands.js'
import type { RootRecord } from './root-record.js'

export interface BandFinderOptions {
  /** Folders whose bands are searched first: those built here and those fetched. Read through memory maps. */
  readonly bandFolders: readonly string[]
  /** Further indexes, in the order in which they are searched, as in the settings. */
  readonly sources: readonly string[]
  /** New bands are found within so long; undefined: those of further paths are looked up once. */
  readonly watchMs: number
  readonly watchSources: boolean
  /** Time limit for all remote indexes together, for one request. */
  readonly remoteMs: number
}

/** Looks up in bands where an item lies. The result is a hint: the caller verifies the bytes there against the id. */
export class BandFinder {
  readonly #local: LocalBands
  readonly #further: readonly (LocalBands | RemoteIndex)[]
  readonly #count: (outcome: 'local' | 'remote' | 'absent' | 'failed') => void

  constructor(
    private readonly options: BandFinderOptions,
    private readonly parts: SourceParts,
    private readonly log: Log,
    meters: Meters,
  ) {
    const { clock } = parts
    this.#local = new LocalBands(options.bandFolders, clock, options.watchMs, true)
    this.#further = options.sources.map((text) => {
      const source = readIndexSource(text)
      if (source === undefined) throw new Error(`CDB64_ROOT_TX_INDEX_SOURCES: not a source: ${text}`)
      if (source.kind !== 'path') return new RemoteIndex(source, parts)
      return new LocalBands([source.path], clock, options.watchSources ? options.watchMs : undefined)
    })
    const outcomes = ['local', 'remote', 'absent', 'failed'] as const
    const counters = new Map(
      outcomes.map((outcome) => [outcome, meters.of('band_lookups_total', { outcome })]),
    )
    this.#count = (outcome) => counters.get(outcome)?.add(1)
  }

  /** Looks up in the bands on this machine only. Never throws. */
  here(id: Id): RootRecord | undefined {
    return this.#local.find(idBytes(id))
  }

  /**
   * Synchronous where a band on this machine has it, or there are no remote indexes. Reads of remote indexes take turns by
   * `client`. Never throws, never rejects.
   */
  find(id: Id, client: string): Hints | undefined | Promise<Hints | undefined> {
    const bytes = idBytes(id)
    const found = this.#local.find(bytes)
    if (found !== undefined) {
      this.#count('local')
      return hintsOf(found)
    }
    const further = this.#further
    for (let at = 0; at < further.length; at += 1) {
      const next = further[at]
      if (!(next instanceof LocalBands)) return this.#ask(bytes, further.slice(at), client)
      const here = next.find(bytes)
      if (here === undefined) continue
      this.#count('local')
      return hintsOf(here)
    }
    this.#count('absent')
    return undefined
  }

  async #ask(
    id: Uint8Array,
    order: readonly (LocalBands | RemoteIndex)[],
    client: string,
  ): Promise<Hints | undefined> {
    const { clock } = this.parts
    let over = false
    const search = async (): Promise<RootRecord | undefined> => {
      for (const index of order) {
        if (over) return undefined
        const found = index instanceof LocalBands ? index.find(id) : await index.find(id, client)
        if (isRefusal(found)) {
          this.#count('failed')
          this.log.warn({ reason: found.message }, 'a remote index could not be reached')
        } else if (found !== undefined) {
          this.#count(index instanceof LocalBands ? 'local' : 'remote')
          return found
        }
      }
      this.#count('absent')
      return undefined
    }
    const found = await new Promise<RootRecord | undefined>((resolve, reject) => {
      const timer = clock.after(this.options.remoteMs, () => {
        over = true
        resolve(undefined)
      })
      void search()
        .then(resolve, reject)
        .finally(() => timer.cancel())
    })
    return found === undefined ? undefined : hintsOf(found)
  }

  close(): void {
    this.#local.close()
    for (const index of this.#further) if (index instanceof LocalBands) index.close()
  }
}

function hintsOf({ path, itemOffset, itemSize }: RootRecord): Hints | undefined {
  const ids = path.map(idOfBytes)
  const [rootId] = ids
  if (rootId === undefined) return undefined
  return {
    rootId,
    ...(ids.length < 2 ? {} : { path: ids }),
    ...(itemOffset === undefined ? {} : { itemOffset }),
    ...(itemOffset === undefined || itemSize === undefined ? {} : { itemSize }),
  }
}
