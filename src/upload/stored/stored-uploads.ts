import { type Clock, pause, type Timer } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { GuardedObjects } from '../../source/objects/guarded-objects.js'
import type { TierKeys } from '../../source/tier/tier-keys.js'
import { readMarker } from '../../source/tier/tier-marker.js'
import { diskRefusal, isDiskError, tryWrite } from '../../store/disk-error.js'
import type { DurableLog } from '../../store/segments/durable-log.js'
import type { Uploads } from '../records/uploads.js'
import { GroupReader } from './group-reader.js'
import type { PlacesSeen } from './log-bytes.js'
import { loggedAgain } from './logged-again.js'
import { NodeClaim } from './node-claim.js'
import { type StorableItem, StoredGroups } from './stored-groups.js'
import type { StoredKeys } from './stored-keys.js'
import { type BroughtItem, StoredRecovery } from './stored-recovery.js'

export interface StoredUploadsParts {
  readonly store: GuardedObjects
  /** The same store for what may take long: large items, removals, recovery. */
  readonly slowStore: GuardedObjects
  readonly keys: StoredKeys
  readonly tierKeys: TierKeys
  readonly network: string
  /** The name of this machine in the store. */
  readonly node: string
  readonly uploads: Uploads
  readonly log: DurableLog
  readonly seen: PlacesSeen
  /** Items in the log that no group has. */
  readonly unstored: Id[]
  /** Makes the key that seals groups: the same with the same wallet. */
  readonly secret: () => Promise<Uint8Array>
  /** Writes brought items down as accepted. */
  readonly takeUp: (items: readonly BroughtItem[]) => void
  readonly count: (outcome: 'put' | 'failed', items: number) => void
  readonly clock: Clock
  readonly logger: Log
}

export interface StoredUploadsOptions {
  /** False: receipts do not wait for the store, which has what was put there before. */
  readonly isWanted: boolean
  /** Receipts wait for the disk, too. */
  readonly isOnDisk: boolean
  readonly againMs?: number
  readonly lookMs?: number
  readonly doubtMs?: number
}

/** After a start that failed; between two looks at whose name it is; between removals. */
const [usualAgainMs, usualLookMs, removeMs] = [2000, 10_000, 1000] as const
/** A store that hung carries PUTs out when it goes on: what is in doubt is removed when it has been well for so long. */
const usualDoubtMs = 10_000
/** Groups that are removed in one go, and items that are put once more. */
const [removedAtOnce, putAgainAtOnce] = [64, 512] as const

/** Accepted uploads in the object store, beside the log of this machine, until they are permanent. */
export class StoredUploads {
  #writer: StoredGroups | undefined
  #claim: NodeClaim | undefined
  /** Why nothing is accepted; undefined: all is well. */
  #why: string | undefined = 'is being opened'
  #timers: Timer[] = []
  #removing: Promise<void> | undefined
  readonly #doubts = new Set<string>()
  #warned = ''
  /** Since when the store answers again, by the monotonic clock; undefined: it failed last. */
  #wellMs: number | undefined
  #work: Promise<void> = Promise.resolve()
  readonly #abort = new AbortController()

  constructor(
    private readonly parts: StoredUploadsParts,
    private readonly options: StoredUploadsOptions,
  ) {}

  /** Opens it in the background, again and again while the store cannot be reached. */
  start(): void {
    this.#work = this.#open()
  }

  /** Why no upload is accepted; undefined: they are, or do not wait for the store. */
  get refusal(): Refusal | undefined {
    if (!this.options.isWanted) return undefined
    if (this.#why !== undefined) return refuse('busy', 'self', `the object store of uploads ${this.#why}`)
    return this.#writer?.refusal
  }

  /**
   * Resolves with the group when the store has the item, and with undefined where receipts do not wait for it. A refusal: the
   * item does not count, and its record in the log is taken back.
   */
  async keep(item: StorableItem): Promise<string | undefined | Refusal> {
    if (!this.options.isWanted) return undefined
    const outcome = this.refusal ?? (await this.#writer?.keep(item))
    if (isRefusal(outcome)) this.parts.log.withdraw(item.place, item.meta.length)
    return outcome
  }

  async close(): Promise<void> {
    this.#abort.abort()
    this.#why = 'is closed'
    for (const timer of this.#timers) timer.cancel()
    await this.#writer?.stop()
    await Promise.all([this.#work, this.#removing])
    await this.parts.store.close()
  }

  async #open(): Promise<void> {
    const { signal } = this.#abort
    const { againMs = usualAgainMs, lookMs = usualLookMs } = this.options
    const secret = await this.parts.secret()
    while (!signal.aborted) {
      const why = await this.#opened(secret).catch((error: unknown) => {
        if (!isDiskError(error)) throw error
        return `cannot be opened: ${diskRefusal(error).message}`
      })
      if (why === undefined) break
      if (this.#why !== why) this.parts.logger.warn({ why }, 'the object store of uploads cannot be used yet')
      this.#why = why
      await pause(againMs, signal)
    }
    if (signal.aborted) return
    this.#why = undefined
    const { clock } = this.parts
    this.#timers = [clock.every(removeMs, () => this.#remove()), clock.every(lookMs, () => void this.#look())]
    if (this.options.isWanted) await this.#putAgain()
  }

  /** Why it cannot be used; undefined: it can. */
  async #opened(secret: Uint8Array): Promise<string | undefined> {
    const { slowStore, tierKeys, network, keys, uploads, node, log, clock, logger } = this.parts
    const { signal } = this.#abort
    const marker = await readMarker(slowStore, tierKeys, network, signal)
    if (isRefusal(marker)) return `cannot be opened: ${marker.message}`
    if (typeof marker === 'string') return `cannot be used: ${marker}`
    const claim = new NodeClaim(slowStore, keys, uploads, node)
    const state = await claim.take(signal)
    if (isRefusal(state)) return `cannot be opened: ${state.message}`
    if (state === 'taken') return `belongs to another machine under the name ${node} (CLUSTER_NODE)`
    const reader = new GroupReader(slowStore, keys, log, secret, signal)
    const { seen, unstored, takeUp } = this.parts
    const recovery = new StoredRecovery({
      store: slowStore,
      keys,
      node,
      uploads,
      reader,
      seen,
      unstored,
      takeUp,
      logger,
      signal,
    })
    const adopting = state === 'new' ? 'all' : this.options.isOnDisk ? 'none' : 'youngest'
    const refusal = await recovery.run(adopting)
    if (refusal !== undefined) return `cannot be opened: ${refusal.message}`
    claim.recovered()
    this.#claim = claim
    this.#writer = new StoredGroups({
      store: this.parts.store,
      largeStore: slowStore,
      keys,
      node,
      logFolder: log.folder,
      secret,
      clock,
      onDoubt: (group) => this.#doubt(group),
      count: this.parts.count,
    })
    const isOurs = (key: string): boolean => key.endsWith(`-${node}`)
    await slowStore.dropParts(keys.groups, isOurs, signal)
    return undefined
  }

  /** The store has the group or not, and its uploaders were refused. */
  #doubt(group: string): void {
    const { uploads } = this.parts
    this.#doubts.add(group)
    this.#wellMs = undefined
    // Where the disk refuses, the next start finds a group without rows.
    tryWrite(() => uploads.environment.write(() => uploads.stored.end(group)))
  }

  /** Whether the name is still this machine's. */
  async #look(): Promise<void> {
    const isTaken = await this.#claim?.isTaken(this.#abort.signal)
    if (isTaken !== true || this.#why !== undefined) return
    const { node, logger } = this.parts
    this.#why = `belongs to another machine under the name ${node} (CLUSTER_NODE)`
    logger.error({ node }, 'another machine uses this name in the object store: no uploads are accepted')
  }

  #remove(): void {
    if (this.#removing !== undefined || this.#why !== undefined) return
    this.#removing = this.#removeEnded().finally(() => {
      this.#removing = undefined
    })
  }

  /** Groups whose items are permanent, or were refused, leave the store. */
  async #removeEnded(): Promise<void> {
    const { uploads, slowStore, keys, logger } = this.parts
    const isWell = this.#doubts.size === 0 || (await this.#isWell())
    const isDue = (group: string): boolean => isWell || !this.#doubts.has(group)
    for (;;) {
      const groups = uploads.stored.ended(this.#doubts.size + removedAtOnce).filter(isDue)
      if (groups.length === 0 || this.#abort.signal.aborted) return
      for (const group of groups) {
        const done = await slowStore.remove(keys.group(group), this.#abort.signal)
        if (isRefusal(done)) {
          this.#warn(done)
          return
        }
      }
      this.#warned = ''
      try {
        uploads.environment.write(() => {
          for (const group of groups) uploads.stored.removed(group)
        })
        for (const group of groups) this.#doubts.delete(group)
      } catch (error) {
        if (!isDiskError(error)) throw error
        logger.warn({ err: error }, 'removed groups of uploads could not be written down')
        return
      }
    }
  }

  /** Once for each reason: without the right to delete the bucket grows for ever. */
  #warn({ message }: Refusal): void {
    if (message === this.#warned || this.#abort.signal.aborted) return
    this.#warned = message
    this.parts.logger.warn({ why: message }, 'permanent uploads cannot be removed from the object store')
  }

  /** Whether the store has answered for so long that what hung in it is carried out. */
  async #isWell(): Promise<boolean> {
    const { slowStore, keys, node, clock } = this.parts
    const seen = await slowStore.head(keys.node(node), this.#abort.signal)
    if (isRefusal(seen)) {
      this.#wellMs = undefined
      return false
    }
    this.#wellMs ??= clock.monotonic()
    return clock.monotonic() - this.#wellMs >= (this.options.doubtMs ?? usualDoubtMs)
  }

  /** Puts what was accepted without the store, or was lost there. */
  async #putAgain(): Promise<void> {
    const { unstored, clock } = this.parts
    const { againMs = usualAgainMs } = this.options
    while (unstored.length > 0 && !this.#abort.signal.aborted) {
      const ids = unstored.splice(0, putAgainAtOnce)
      const left = await Promise.all(ids.map((id) => this.#putOneAgain(id)))
      unstored.push(...left.flatMap((id) => (id === undefined ? [] : [id])))
      if (left.some((id) => id !== undefined)) await pause(againMs, this.#abort.signal)
      else await new Promise<void>((resolve) => void clock.after(0, resolve))
    }
  }

  /** Its id where it must be tried again. */
  async #putOneAgain(id: Id): Promise<Id | undefined> {
    const { uploads, log, logger } = this.parts
    const isDue = (): ReturnType<Uploads['find']> => {
      const item = uploads.find(id)
      return item === undefined || item.released === true || item.stored !== undefined ? undefined : item
    }
    const item = isDue()
    if (item === undefined || this.#writer === undefined) return undefined
    try {
      const outcome = this.refusal ?? (await this.#writer.keep(await loggedAgain(item, log.folder)))
      if (isRefusal(outcome)) return id
      uploads.environment.write(() => {
        const now = isDue()
        if (now !== undefined) uploads.putStored(now, outcome)
        else if (!uploads.stored.has(outcome)) uploads.stored.end(outcome)
      })
      return undefined
    } catch (error) {
      if (!isDiskError(error)) throw error
      logger.warn({ err: error }, 'an upload could not be put into the object store again')
      return id
    }
  }
}
