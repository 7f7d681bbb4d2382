import { setImmediate as turn } from 'node:timers/promises'
import type { Log } from '../../actor/log.js'
import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { ObjectStore } from '../../source/objects/object-store.js'
import { keysOf } from '../../source/objects/small-objects.js'
import type { DurableLog } from '../../store/segments/durable-log.js'
import {
  type AcceptedItem,
  isGone,
  isLeftElsewhere,
  type LoggedUpload,
  type Uploads,
} from '../records/uploads.js'
import type { SealedEntry } from './group-format.js'
import type { GroupReader } from './group-reader.js'
import type { PlacesSeen } from './log-bytes.js'
import { decodeGroupName, type StoredKeys } from './stored-keys.js'

/** An item out of the log, or of a group, that the tables do not know. */
export type BroughtItem = LoggedUpload & Pick<AcceptedItem, 'place' | 'stored'>

export interface StoredRecoveryParts {
  readonly store: ObjectStore
  readonly keys: StoredKeys
  readonly node: string
  readonly uploads: Uploads
  readonly reader: GroupReader
  readonly itemLog: Pick<DurableLog, 'release'>
  /** Places of the log with an item, at the start. */
  readonly seen: PlacesSeen
  /** Gets items that the store lacks. */
  readonly unstored: Id[]
  /** Writes items down as accepted, in one transaction. */
  readonly takeUp: (items: readonly BroughtItem[]) => void
  readonly logger: Pick<Log, 'error' | 'info' | 'warn'>
  readonly signal: AbortSignal
}

/** Which groups are looked into for items that the tables do not know. */
export type Adopting = 'all' | 'youngest' | 'none'

/** Before the youngest group: what the tables may have lost by a power cut. */
const youngestMs = 600_000
/** A moment of rest for others, after so many groups that cost no request. */
const restEvery = 256

/** Brings the store, the tables and the log of this machine into line, before anything is accepted. */
export class StoredRecovery {
  #brought = 0

  constructor(private readonly parts: StoredRecoveryParts) {}

  /** A refusal: the store could not be reached; what was done stays. Throws where the disk refuses. */
  async run(adopting: Adopting): Promise<Refusal | undefined> {
    const { uploads, logger } = this.parts
    // Of this machine, under this name or an earlier one.
    const listed = await this.#list((group) => this.#isOwn(group) || uploads.stored.has(group))
    if (isRefusal(listed)) return listed
    let count = 0
    for (const group of uploads.stored.groups()) {
      if (count++ % restEvery === 0) await turn()
      const refusal = listed.has(group) ? await this.#mend(group) : this.#lost(group)
      if (refusal !== undefined) return refusal
    }
    const own = [...listed].filter((group) => this.#isOwn(group))
    const newestMs = Math.max(0, ...own.slice(-1).map(timeOf))
    for (const group of own) {
      if (count++ % restEvery === 0) await turn()
      const isYoung = timeOf(group) >= newestMs - youngestMs
      const isLooked = adopting === 'all' || (adopting === 'youngest' && isYoung)
      const refusal = isLooked ? await this.#adopt(group) : undefined
      if (refusal !== undefined) return refusal
      // Its PUT had an unknown outcome, and its uploaders were refused.
      if (!isLooked) this.#endUnneeded(group)
    }
    if (this.#brought > 0)
      logger.warn({ items: this.#brought }, 'accepted uploads were brought back from the object store')
    return undefined
  }

  /**
   * Items of groups that the store has lost since, and that are held by this machine, are to be put again. A refusal: the store
   * could not be reached. Throws where the disk refuses.
   */
  async compare(holds: (group: string) => Promise<boolean>): Promise<Refusal | undefined> {
    const { uploads, logger } = this.parts
    const before = [...uploads.stored.groups()]
    const listed = await this.#list((group) => uploads.stored.has(group))
    if (isRefusal(listed)) return listed
    const gone = before.filter((group) => !listed.has(group))
    const held = await Promise.all(gone.map(holds))
    // What was removed meanwhile, because it is permanent, is needed no more.
    const lost = gone.filter((group, at) => held[at] === true && uploads.stored.has(group))
    for (const group of lost) this.#lost(group)
    if (lost.length > 0)
      logger.warn({ groups: lost.length }, 'uploads that the object store has lost are put there again')
    return undefined
  }

  #isOwn(group: string): boolean {
    return decodeGroupName(group)?.node === this.parts.node
  }

  /**
   * Takes up what lies under the name of another machine. Resolves with the number of items that were unknown here. A refusal:
   * the store could not be reached; what was done stays. Throws where the disk refuses.
   */
  async adopt(node: string): Promise<number | Refusal> {
    const { stored } = this.parts.uploads
    const listed = await this.#list((group) => decodeGroupName(group)?.node === node && !stored.has(group))
    if (isRefusal(listed)) return listed
    const before = this.#brought
    for (const group of listed) {
      const refusal = await this.#adopt(group)
      if (refusal !== undefined) return refusal
    }
    return this.#brought - before
  }

  /** Groups that are wanted, the oldest first. */
  async #list(isWanted: (group: string) => boolean): Promise<Set<string> | Refusal> {
    const { store, keys, signal } = this.parts
    const names = new Set<string>()
    for await (const page of keysOf(store, keys.groups, undefined, signal)) {
      if (isRefusal(page)) return page
      for (const key of page) {
        const name = keys.nameOf(key)
        if (name !== undefined && isWanted(name)) names.add(name)
      }
    }
    return names
  }

  /** The store has lost a group: an older state of it was restored, or another bucket is used now. */
  #lost(group: string): undefined {
    const { uploads } = this.parts
    const lost = [...uploads.stored.ids(group)].flatMap((id) => {
      const item = uploads.find(id)
      return item?.stored === group && item.released !== true ? [item] : []
    })
    uploads.environment.write(() => {
      uploads.stored.forget(group)
      for (const { stored: _, ...item } of lost) uploads.put(item)
    })
    for (const { id } of lost) this.parts.unstored.push(id)
  }

  /** Brings bytes of a group that the log has lost. */
  async #mend(group: string): Promise<Refusal | undefined> {
    const { uploads, seen, reader } = this.parts
    const missing = new Set<Id>()
    for (const id of uploads.stored.ids(group)) {
      const item = uploads.find(id)
      if (item?.stored === group && item.released !== true && !seen.has(item.place)) missing.add(id)
    }
    if (missing.size === 0) return undefined
    const entries = await this.#entries(group)
    if (isRefusal(entries)) return entries
    const wanted = entries.filter(({ id }) => missing.has(id))
    const places = await reader.bring(group, wanted)
    if (isRefusal(places)) return this.#unlessForged(group, places)
    uploads.environment.write(() => {
      for (const [at, { id }] of wanted.entries()) {
        const [item, place] = [uploads.find(id), places[at]]
        if (item === undefined || place === undefined) continue
        uploads.put({ ...item, place })
        seen.add(place)
      }
    })
    this.#brought += wanted.length
    return undefined
  }

  /** Takes up what a group has and the tables do not. */
  async #adopt(group: string): Promise<Refusal | undefined> {
    const { uploads, reader, takeUp } = this.parts
    if (uploads.stored.isEnded(group)) return undefined
    const entries = await this.#entries(group)
    if (isRefusal(entries)) return entries
    const unknown = entries.flatMap((entry) => {
      const logged = JSON.parse(Buffer.from(entry.meta).toString()) as LoggedUpload
      return this.#isUnknown(logged) ? [{ entry, logged }] : []
    })
    const places = await reader.bring(
      group,
      unknown.map(({ entry }) => entry),
    )
    if (isRefusal(places)) return this.#unlessForged(group, places)
    const brought: BroughtItem[] = []
    for (const [at, { logged }] of unknown.entries()) {
      const place = places[at]
      if (place === undefined) continue
      // It may have been uploaded here meanwhile.
      if (this.#isUnknown(logged)) brought.push({ ...logged, place, stored: group })
      else this.parts.itemLog.release(place)
    }
    if (brought.length > 0) takeUp(brought)
    this.#brought += brought.length
    uploads.environment.write(() => {
      for (const { id } of entries) {
        const item = uploads.find(id)
        if (item === undefined || item.released === true) continue
        // Nobody but this machine has it now.
        const { isTakenOver: _, ...own } = item
        if (own.stored === undefined) uploads.putStored(own, group)
        else if (item.isTakenOver === true) uploads.put(own)
      }
    })
    if (entries.length > 0) this.#endUnneeded(group)
    return undefined
  }

  #isUnknown({ id, receivedMs, sale }: LoggedUpload): boolean {
    const known = this.parts.uploads.find(id)
    if (known === undefined) return true
    // What was left to another machine comes back when that one is gone, too.
    const isEarlier = isLeftElsewhere(known) || known.receivedMs < receivedMs
    return sale === undefined && isGone(known) && isEarlier
  }

  #endUnneeded(group: string): void {
    const { stored, environment } = this.parts.uploads
    if (!stored.has(group) && !stored.isEnded(group)) environment.write(() => stored.end(group))
  }

  /** None where the group is not this service's: it is left alone. */
  async #entries(group: string): Promise<readonly SealedEntry[] | Refusal> {
    const head = await this.parts.reader.head(group)
    if (head === 'foreign')
      this.parts.logger.error({ group }, 'a group of uploads was not written by this service: left alone')
    return head === 'foreign' || head === 'gone' ? [] : head
  }

  /** What is not as it was kept is no reason to try the others never. */
  #unlessForged(group: string, refusal: Refusal): Refusal | undefined {
    if (refusal.refused !== 'forged') return refusal
    this.parts.logger.error({ group }, 'a group of uploads has other bytes than were kept: left alone')
    return undefined
  }
}

function timeOf(group: string): number {
  return decodeGroupName(group)?.atMs ?? 0
}
