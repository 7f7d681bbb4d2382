import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { ObjectStore } from '../objects/object-store.js'
import { putBytes } from '../objects/small-objects.js'
import type { PackFollower } from './pack-follower.js'
import { encodeListing, type PackListing } from './pack-format.js'
import type { TierKeys } from './tier-keys.js'
import type { TierRecords } from './tier-records.js'

/** Others may take a number before this machine does. */
const triesMax = 50

/** Puts directories under the next number. */
export class ListingPublisher {
  constructor(
    private readonly store: ObjectStore,
    private readonly keys: TierKeys,
    private readonly records: TierRecords,
    private readonly follower: PackFollower,
  ) {}

  /** True: it is in the store, and the records know of it. Throws where the disk refuses. */
  async publish(listing: PackListing, signal: AbortSignal): Promise<true | Refusal> {
    const { pack, entries } = listing
    const [first] = entries
    const bytes = encodeListing(listing)
    for (let tries = 0; tries < triesMax; tries += 1) {
      const followed = await this.follower.follow(signal)
      if (followed !== undefined) return followed
      // It was put although no answer came.
      if (first !== undefined && this.records.place(first.id)?.pack === pack) return true
      const number = this.records.last + 1
      const put = await putBytes(this.store, this.keys.directory(number), bytes, true, signal)
      if (isRefusal(put)) return put
      if (put === 'put') {
        this.records.add(number, listing)
        return true
      }
    }
    return refuse('busy', 'upstream', 'other machines took every number for a directory')
  }
}
