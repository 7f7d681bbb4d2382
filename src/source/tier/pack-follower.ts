import type { Log } from '../../actor/log.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { ObjectStore } from '../objects/object-store.js'
import { wholeObject } from '../objects/small-objects.js'
import { decodeListing, listingMaxBytes } from './pack-format.js'
import type { TierKeys } from './tier-keys.js'
import type { TierRecords } from './tier-records.js'

/** No pack: stands for a directory that cannot be read. */
const nothing = { pack: '0', entries: [] }

/**
 * Reads the directories of packs in the order of their numbers, until there is no further one. One request a directory, and one
 * that finds nothing.
 */
export class PackFollower {
  #underway: Promise<Refusal | undefined> | undefined

  constructor(
    private readonly store: ObjectStore,
    private readonly keys: TierKeys,
    private readonly records: TierRecords,
    private readonly log: Log,
  ) {}

  /** Undefined: all is read. A refusal: the store could not be reached. Throws where the disk refuses. */
  follow(signal: AbortSignal): Promise<Refusal | undefined> {
    this.#underway ??= this.#read(signal).finally(() => {
      this.#underway = undefined
    })
    return this.#underway
  }

  async #read(signal: AbortSignal): Promise<Refusal | undefined> {
    for (;;) {
      const number = this.records.last + 1
      const found = await this.store.get(this.keys.directory(number), undefined, { signal })
      if (isRefusal(found)) return found.refused === 'unknown' ? undefined : found
      const bytes = found.sizeBytes > listingMaxBytes ? undefined : await wholeObject(found, listingMaxBytes)
      if (bytes === undefined) found.drop()
      else if (isRefusal(bytes)) return bytes
      const listing = bytes === undefined ? undefined : decodeListing(bytes)
      if (listing === undefined)
        this.log.error({ number }, 'a directory of the object store is malformed: left out')
      this.records.add(number, listing ?? nothing)
    }
  }

  /**
   * Whether the store still has the last directory that was read: not where it was replaced, or went back to an older state. A
   * refusal: it could not be reached.
   */
  async isCurrent(signal: AbortSignal): Promise<boolean | Refusal> {
    if (this.records.last === 0) return true
    const head = await this.store.head(this.keys.directory(this.records.last), signal)
    if (!isRefusal(head)) return true
    return head.refused === 'unknown' ? false : head
  }
}
