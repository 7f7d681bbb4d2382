import { type Clock, elapsing, pause, type Timer } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { GroupCommit } from '../../ledger/group.js'
import type { GuardedObjects } from '../../source/objects/guarded-objects.js'
import type { TierKeys } from '../../source/tier/tier-keys.js'
import { readMarker } from '../../source/tier/tier-marker.js'
import { diskRefusal, isDiskError } from '../../store/disk-error.js'
import type { DurableLog } from '../../store/segments/durable-log.js'
import type { LogPlace } from '../../store/segments/log-file.js'
import type { AcceptedItem, Uploads } from '../records/uploads.js'
import { EndedGroups } from './ended-groups.js'
import { GroupReader } from './group-reader.js'
import { handOver } from './handed-over.js'
import type { PlacesSeen } from './log-bytes.js'
import { machineOf, nameAfter } from './machine-names.js'
import { NodeClaim } from './node-claim.js'
import { PutAgain } from './put-again.js'
import { type StorableItem, StoredGroups } from './stored-groups.js'
import { decodeGroupName, type StoredKeys } from './stored-keys.js'
import { type BroughtItem, StoredRecovery } from './stored-recovery.js'
import { TakeoverWatch, type TakeoverWatchParts } from './takeover-watch.js'
import { isTakenFrom, type Takeover, Takeovers } from './takeovers.js'

export interface StoredUploadsParts {
  readonly store: GuardedObjects
  /** The same store for what may take long: large items, removals, recovery. */
  readonly slowStore: GuardedObjects
  readonly keys: StoredKeys
  readonly tierKeys: TierKeys
  readonly network: string
  /** The name of this machine. */
  readonly node: string
  /** Runs something while no bundle is packed. */
  readonly betweenRounds: <T>(act: () => T) => Promise<T>
  /** Absent: nothing is taken over. */
  readonly takeover?: Pick<TakeoverWatchParts, 'gone' | 'answerMs' | 'onAdopted'> & { close(): Promise<void> }
  readonly uploads: Uploads
  readonly itemLog: DurableLog
  readonly seen: PlacesSeen
  /** Items in the log that no group has. */
  readonly unstored: Id[]
  /** Makes the key that seals groups: the same with the same wallet. */
  readonly secret: () => Promise<Uint8Array>
  /** Leaves what waits for its payment in groups that another machine has taken over to that machine. */
  readonly leaveSales: (isLost: (group: string) => boolean) => Promise<void>
  /** Writes brought items down as accepted. */
  readonly takeUp: (items: readonly BroughtItem[]) => void
  readonly onRecovered?: () => void
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
  readonly adoptMs?: number
  readonly compareMs?: number
}

/** After a start that failed; between two looks at whose name it is; between removals. */
const [usualAgainMs, usualLookMs, removeMs] = [2000, 10_000, 1000] as const
/** Between two looks at what hung in the store when its machine was taken over, and at who is gone. */
const [usualAdoptMs, tendMs] = [600_000, 5000] as const
/** Between two looks whether the store has all groups. */
const usualCompareMs = 600_000
/** A look that took longer does not state whose a group is now: this machine may have stood still since. */
const heldLookMs = 30_000
const heldAtOnce = 1000
const notOpen = refuse('busy', 'self', 'the object store of uploads is being opened')

/** Accepted uploads in the object store, beside the log of this machine, until they are permanent. */
export class StoredUploads {
  #writer: StoredGroups | undefined
  #claim: NodeClaim | undefined
  #takeovers: Takeovers | undefined
  /** Why nothing is accepted; undefined: all is well. */
  #why: string | undefined = 'is being opened'
  #timers: Timer[] = []
  #tending: Promise<void> | undefined
  #comparing: Promise<void> | undefined
  #isRecovered = false
  readonly #ended: EndedGroups
  readonly #again: PutAgain
  /** Groups of which it is to be known whether they are held: all that wait share the look that begins next. */
  readonly #held = new GroupCommit((groups: readonly string[]) => this.#lookHeld(groups), heldAtOnce)
  /** What was logged last of each failure. */
  readonly #warned = new Map<string, string>()
  #work: Promise<void> = Promise.resolve()
  readonly #abort = new AbortController()

  constructor(
    private readonly parts: StoredUploadsParts,
    private readonly options: StoredUploadsOptions,
  ) {
    const { slowStore: store, keys, node, uploads, clock, logger } = parts
    this.#again = new PutAgain({
      ...parts,
      put: async (read) => this.refusal ?? (await this.#writer?.put(await read())) ?? notOpen,
      againMs: options.againMs ?? usualAgainMs,
      signal: this.#abort.signal,
    })
    this.#ended = new EndedGroups({
      store,
      keys,
      node,
      uploads,
      clock,
      signal: this.#abort.signal,
      doubtMs: options.doubtMs,
      onRefused: (what, refusal) => this.#warn(what, refusal),
      onWell: (what) => this.#warned.delete(what),
      onDiskError: (err) => logger.warn({ err }, 'removed groups of uploads could not be written down'),
    })
  }

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

  /** Why the store counts as standing still, whether uploads come or not; undefined: it does not. */
  get fault(): Refusal | undefined {
    return this.refusal ?? (this.options.isWanted ? this.#writer?.fault : undefined)
  }

  /** What does not get on, although uploads are taken. */
  get warnings(): readonly string[] {
    return this.options.isWanted ? this.#again.warnings : []
  }

  /**
   * Resolves with the group when the store has the item, and with undefined where receipts do not wait for it. A refusal: the
   * item does not count, and its record in the log is taken back.
   */
  async put(item: StorableItem): Promise<string | undefined | Refusal> {
    if (!this.options.isWanted) return undefined
    const outcome = this.refusal ?? (await this.#writer?.put(item))
    if (isRefusal(outcome)) this.parts.itemLog.withdraw(item.place, item.meta.length)
    return outcome
  }

  /**
   * Whether another machine has one of these items: one list at most. False where the store is away: receipts promise a post.
   */
  async isTakenOver(items: readonly Id[]): Promise<boolean> {
    const { uploads } = this.parts
    const found = items.map((id) => uploads.find(id))
    if (found.some((item) => item?.isTakenOver === true)) return true
    const taken = await this.#taken(found.map((item) => item?.stored ?? ''))
    return !isRefusal(taken) && taken.size > 0
  }

  /**
   * Whether a group is still this machine's, as the store states now. False where the store does not answer. For steps that only
   * one machine may take: this one may have stood still since it last knew, and another one may have taken over its uploads.
   */
  holds(group: string): Promise<boolean> {
    return this.#held.add(group)
  }

  /**
   * Puts the copy of an item in the store into the log once more. Undefined: the store has none. A refusal: it cannot be had now,
   * or is not what was kept. Rejects where the disk fails.
   */
  async bringAgain({ id, stored }: AcceptedItem): Promise<LogPlace | Refusal | undefined> {
    if (stored === undefined) return undefined
    const { slowStore, keys, itemLog, secret } = this.parts
    return new GroupReader(slowStore, keys, itemLog, await secret(), this.#abort.signal).one(stored, id)
  }

  /** One GET, and in a cluster one list. */
  async #lookHeld(groups: readonly string[]): Promise<boolean[]> {
    const { signal } = this.#abort
    const elapsedMs = elapsing(this.parts.clock)
    const [isNameTaken, taken] = await Promise.all([this.#claim?.isTaken(signal), this.#taken(groups)])
    if (isNameTaken === true) void this.#look()
    const isKnown = isNameTaken === false && !isRefusal(taken) && elapsedMs() < heldLookMs
    return groups.map((group) => isKnown && !taken.has(group))
  }

  /** Those of the groups that another machine has taken over. */
  async #taken(groups: readonly string[]): Promise<ReadonlySet<string> | Refusal> {
    const { takeover, node } = this.parts
    const all = (takeover && (await this.#takeovers?.all(this.#abort.signal))) ?? new Map<string, Takeover>()
    if (isRefusal(all)) return all
    const taken = groups.filter((group) => isTakenFrom(node, decodeGroupName(group)?.node ?? '', all))
    if (taken.length > 0) void this.#look()
    return new Set(taken)
  }

  async close(): Promise<void> {
    this.#abort.abort()
    this.#why = 'is closed'
    for (const timer of this.#timers) timer.cancel()
    await this.#writer?.stop()
    await Promise.all([this.#work, this.#ended.settled(), this.#again.settled()])
    await Promise.all([this.#tending, this.#comparing])
    await this.parts.takeover?.close()
    await this.parts.store.close()
  }

  async #open(): Promise<void> {
    const { signal } = this.#abort
    const { againMs = usualAgainMs, lookMs = usualLookMs, compareMs = usualCompareMs } = this.options
    const secret = await this.parts.secret()
    const takeovers = new Takeovers(this.parts.slowStore, this.parts.keys, secret)
    this.#takeovers = takeovers
    while (!signal.aborted) {
      const why = await this.#opened(secret, takeovers).catch((error: unknown) => {
        if (!isDiskError(error)) throw error
        return `cannot be opened: ${diskRefusal(error).message}`
      })
      if (why === undefined) break
      if (this.#why !== why) this.parts.logger.warn({ why }, 'the object store of uploads cannot be used yet')
      this.#why = why
      await pause(againMs, signal)
    }
    if (signal.aborted) return
    this.parts.onRecovered?.()
    this.#why = undefined
    const { clock } = this.parts
    const watch = this.#watch(secret, takeovers)
    this.#timers = [
      clock.every(removeMs, () => this.#why === undefined && void this.#ended.remove()),
      clock.every(lookMs, () => void this.#look()),
      clock.every(compareMs, () => {
        this.#comparing ??= this.#compare(secret).finally(() => {
          this.#comparing = undefined
        })
      }),
      ...(watch === undefined ? [] : [clock.every(Math.min(tendMs, lookMs), () => this.#tend(watch))]),
    ]
    if (this.options.isWanted) this.#again.begin()
  }

  /** Why it cannot be used; undefined: it can. */
  async #opened(secret: Uint8Array, takeovers: Takeovers): Promise<string | undefined> {
    const { store, slowStore, tierKeys, network, keys, itemLog, clock, count } = this.parts
    const { signal } = this.#abort
    const marker = await readMarker(slowStore, tierKeys, network, signal)
    if (isRefusal(marker)) return `cannot be opened: ${marker.message}`
    if (typeof marker === 'string') return `cannot be used: ${marker}`
    const claim = await this.#named(takeovers)
    if (isRefusal(claim)) return `cannot be opened: ${claim.message}`
    const { node } = claim
    const state = await claim.take(signal)
    if (isRefusal(state)) return `cannot be opened: ${state.message}`
    if (state === 'taken') return `belongs to another machine under the name ${node} (CLUSTER_NODE)`
    const adopting = state === 'new' ? 'all' : this.options.isOnDisk ? 'none' : 'youngest'
    const refusal = this.#isRecovered ? undefined : await this.#recovery(node, secret).run(adopting)
    if (refusal !== undefined) return `cannot be opened: ${refusal.message}`
    this.#isRecovered = true
    claim.recovered()
    this.#claim = claim
    this.#writer = new StoredGroups({
      store,
      largeStore: slowStore,
      keys,
      node,
      logFolder: itemLog.folder,
      secret,
      clock,
      onDoubt: (group) => this.#ended.doubt(group),
      count,
    })
    const isOurs = (key: string): boolean => decodeGroupName(keys.nameOf(key) ?? '')?.node === node
    await slowStore.dropParts(keys.groups, isOurs, signal)
    return undefined
  }

  /** The name of this machine in the store: another one than before, where another machine has taken over what is there. */
  async #named(takeovers: Takeovers): Promise<NodeClaim | Refusal> {
    const { slowStore, keys, uploads, itemLog, node, betweenRounds, unstored, logger } = this.parts
    const all = await takeovers.all(this.#abort.signal)
    if (isRefusal(all)) return all
    const isTakenOver = (name: string): boolean => isTakenFrom(node, name, all)
    const last = NodeClaim.nameIn(uploads) ?? node
    let name = machineOf(last) === node ? last : node
    while (isTakenOver(name)) name = nameAfter(name)
    if ([...all.keys()].some(isTakenOver)) {
      // First of all, because a sale may become an accepted item meanwhile.
      await this.parts.leaveSales((group) => isTakenOver(decodeGroupName(group)?.node ?? ''))
      const { stay, left } = await betweenRounds(() => handOver(uploads, itemLog, isTakenOver))
      unstored.push(...stay)
      if (left > 0)
        logger.warn(
          { items: left },
          'uploads of this machine were taken over by another one while it was gone',
        )
    }
    return new NodeClaim(slowStore, keys, uploads, name)
  }

  #recovery(node: string, secret: Uint8Array): StoredRecovery {
    const { slowStore, keys, uploads, itemLog, seen, unstored, takeUp, logger } = this.parts
    const { signal } = this.#abort
    const reader = new GroupReader(slowStore, keys, itemLog, secret, signal)
    return new StoredRecovery({
      store: slowStore,
      keys,
      node,
      uploads,
      reader,
      itemLog,
      seen,
      unstored,
      takeUp,
      logger,
      signal,
    })
  }

  #watch(secret: Uint8Array, takeovers: Takeovers): TakeoverWatch | undefined {
    const { node, takeover, clock, logger } = this.parts
    if (takeover === undefined) return undefined
    return new TakeoverWatch({
      ...takeover,
      takeovers,
      machine: node,
      adopt: (name) => this.#recovery(node, secret).adopt(name),
      adoptMs: this.options.adoptMs ?? usualAdoptMs,
      clock,
      logger,
      signal: this.#abort.signal,
    })
  }

  #tend(watch: TakeoverWatch): void {
    if (this.#why !== undefined || this.#abort.signal.aborted) return
    this.#tending ??= this.#tended(watch).finally(() => {
      this.#tending = undefined
    })
  }

  /** What fails is done by the next call. */
  async #tended(watch: TakeoverWatch): Promise<void> {
    try {
      const refusal = await watch.tend()
      if (refusal !== undefined) this.#warn('uploads of machines that are gone cannot be looked at', refusal)
    } catch (error) {
      if (!isDiskError(error)) throw error
      this.#warn('uploads of machines that are gone cannot be taken over', diskRefusal(error))
    }
  }

  /** Puts again what the store has lost since the start: an older state of it was restored. */
  async #compare(secret: Uint8Array): Promise<void> {
    if (this.#why !== undefined || !this.options.isWanted) return
    const recovery = this.#recovery(this.parts.node, secret)
    const done = await recovery
      .compare((group) => this.holds(group))
      .catch((error: unknown) => {
        if (!isDiskError(error)) throw error
        return diskRefusal(error)
      })
    if (done !== undefined) this.#warn('it is not known whether the object store has all uploads', done)
    this.#again.begin()
  }

  /** Whether the name is still this machine's; and the sign that this one is there, where another one wants it. */
  async #look(): Promise<void> {
    const { node, logger, takeover } = this.parts
    const { signal } = this.#abort
    const [isTaken] = await Promise.all([this.#claim?.isTaken(signal), this.#writer?.tryAgain()])
    if (this.#why !== undefined || signal.aborted) return
    if (isTaken === true) {
      this.#why = `belongs to another machine under the name ${node} (CLUSTER_NODE)`
      logger.error({ node }, 'another machine has this name in the object store now: no uploads are accepted')
      for (const timer of this.#timers) timer.cancel()
      await Promise.all([this.#writer?.stop(), this.#ended.settled(), this.#tending])
      this.#ended.forgetDoubts()
      if (!signal.aborted) this.#work = this.#open()
      return
    }
    const hasQuestion = takeover !== undefined && (await this.#takeovers?.hasQuestion(node, signal))
    if (hasQuestion === true) await this.#takeovers?.answer(node, signal)
  }

  /** Once for each reason: without the right to delete the bucket grows for ever. */
  #warn(what: string, { message }: Refusal): void {
    if (message === this.#warned.get(what) || this.#abort.signal.aborted) return
    this.#warned.set(what, message)
    this.parts.logger.warn({ why: message }, what)
  }
}
