import { type AnySignal, signalOf } from '../../actor/lazy-signal.js'
import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { Found, Source, Wanted } from '../../source/source.js'
import { TierSource, type TierSourceParts } from '../../source/tier/tier-source.js'
import { tryWrite } from '../../store/disk-error.js'
import type { NeighbourFollower } from './neighbour-follower.js'
import type { NeighbourRecords } from './neighbour-records.js'
import type { RecentObjects } from './recent-objects.js'
import type { StoredKeys } from './stored-keys.js'

const name = 'neighbours'
/** Groups that are tried for one read. */
const placesMax = 4

const absent = refuse('unknown', 'client', 'no machine of this cluster has just accepted it')

/**
 * Uploads that other machines have accepted, and that are in no block yet: out of the store, one request for one that is known,
 * and one more to learn of it. As with all of the store, they count as the word of a stranger.
 */
export class NeighbourSource implements Source {
  readonly name = name
  readonly #inner: TierSource

  constructor(
    private readonly records: NeighbourRecords,
    private readonly follower: Pick<NeighbourFollower, 'freshSoon' | 'mayHaveNeighbours'>,
    recent: RecentObjects,
    keys: StoredKeys,
    read: TierSourceParts['read'],
  ) {
    this.#inner = new TierSource({
      name,
      store: recent,
      keys: { pack: (group) => keys.group(group), object: (id) => keys.group(id) },
      packed: (id) => this.#place(id),
      wrong: (id, group, isGone) => this.#wrong(id, group, isGone),
      read,
    })
  }

  async open(wanted: Wanted, ending: AnySignal): Promise<Found | Refusal> {
    const signal = signalOf(ending)
    if (wanted.avoid.has(name)) return absent
    if (this.records.find(wanted.id) === undefined) {
      const refusal = this.follower.mayHaveNeighbours ? await this.follower.freshSoon() : undefined
      if (this.records.find(wanted.id) === undefined) return refusal ?? absent
    }
    for (let tries = 0; tries < placesMax; tries += 1) {
      const found = await this.#inner.open(wanted, signal)
      if (!isRefusal(found) || found.refused !== 'unknown') return found
      // Its group is gone, and is forgotten now: another one may have it.
      if (this.records.find(wanted.id) === undefined) break
    }
    return absent
  }

  #place(id: Id): ReturnType<TierSourceParts['packed']> {
    const place = this.records.find(id)
    if (place === undefined) return undefined
    const { group, offset, sizeBytes, headerSize, contentType } = place
    return { pack: group, offset, sizeBytes, dataStart: headerSize, contentType }
  }

  #wrong(id: Id, group: string | undefined, isGone: boolean): void {
    if (group === undefined) return
    // A disk that refuses leaves the record, and the next reader finds the same.
    tryWrite(() => (isGone ? this.records.drop([group]) : this.records.forget(id, group)))
  }
}
