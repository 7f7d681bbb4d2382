import { randomBytes } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { sha256Of } from '../../../native/digest/digest.js'
import type { Clock, Timer } from '../../actor/clock.js'
import { FairSlots } from '../../actor/fair-slots.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { GuardedObjects } from '../../source/objects/guarded-objects.js'
import { putBytes } from '../../source/objects/small-objects.js'
import { codeOf } from '../../store/blobs.js'
import { diskRefusal } from '../../store/disk-error.js'
import { cutLogError, type LogPlace, logFileName } from '../../store/segments/log-file.js'
import {
  encodeGroupHead,
  type GroupHead,
  type GroupItem,
  groupItemsMax,
  groupMaxBytes,
  groupMetaMaxBytes,
} from './group-format.js'
import { readLogInto } from './log-bytes.js'
import { encodeGroupName, type StoredKeys } from './stored-keys.js'

/** An item that is in the log of this machine. */
export interface StorableItem extends GroupItem {
  readonly place: LogPlace
}

export interface StoredGroupsParts {
  /** The store of groups; `largeStore` is that of large items, which would keep groups waiting. */
  readonly store: GuardedObjects
  readonly largeStore: GuardedObjects
  readonly keys: StoredKeys
  readonly node: string
  readonly logFolder: string
  /** Seals heads. */
  readonly secret: Uint8Array
  readonly clock: Clock
  /** The store has it, or not, nobody knows: nothing of it counts. */
  readonly onDoubt: (group: string) => void
  readonly count: (outcome: 'put' | 'failed', items: number) => void
}

/** What comes in this time is one object; the first item after a pause does not wait. */
export const gatherMs = 100
/** Groups under way. What comes while all are waits for one of them. */
const groupsMax = 4
/** Items that wait for a group, and their bytes: with more, uploads are refused. */
const [waitingMax, waitingMaxBytes] = [16_384, 4 * groupMaxBytes] as const
/** Larger items are objects of their own. */
export const largeBytes = 1024 * 1024
/** Larger ones are put in parts. */
const partsFromBytes = 16 * 1024 * 1024
/** A store that has not taken a small item for so long stands still. */
const stillMs = 30_000
/** Large items under way: each has some of its bytes in memory. */
const largeMax = 2

const behind = refuse('busy', 'self', 'the object store is too slow for what is uploaded')

interface Waiting {
  readonly item: StorableItem
  readonly sinceMs: number
  readonly done: (outcome: string | Refusal) => void
}

/**
 * Puts accepted items into the object store: what comes within 100 ms, or 8 MiB, as one object. The bytes are read out of the log
 * when the object is put, so nothing but this one is in memory.
 */
export class StoredGroups {
  #waiting: Waiting[] = []
  #waitingBytes = 0
  #timer: Timer | undefined
  #beganMs = Number.NEGATIVE_INFINITY
  readonly #underway = new Set<Promise<void>>()
  /** The first item of each group that is under way. */
  readonly #firsts = new Set<Waiting | undefined>()
  readonly #large = FairSlots.unbounded(largeMax)
  readonly #abort = new AbortController()

  constructor(private readonly parts: StoredGroupsParts) {}

  /** Why nothing is taken now. */
  get refusal(): Refusal | undefined {
    const isBehind = this.#waiting.length >= waitingMax || this.#waitingBytes >= waitingMaxBytes
    if (isBehind) return behind
    return this.parts.store.restMs('write') === 0 ? undefined : this.#failing
  }

  get #failing(): Refusal {
    const fault = this.parts.store.fault('write') ?? 'away'
    return refuse('busy', 'self', `the object store takes nothing (${fault})`)
  }

  /** Why the store counts as standing still: the same, also between two trials, and where it does not answer. */
  get fault(): Refusal | undefined {
    const { store, clock } = this.parts
    if (this.refusal !== undefined || store.isFailing('write')) return this.refusal ?? this.#failing
    const since = [this.#waiting[0], ...this.#firsts].map((first) => first?.sinceMs ?? clock.monotonic())
    const waitedMs = clock.monotonic() - Math.min(...since)
    if (waitedMs <= stillMs) return undefined
    return refuse(
      'busy',
      'self',
      `the object store has not taken an upload for ${Math.round(waitedMs / 1000)} s`,
    )
  }

  /** Tries whether a store that failed is well again: where no uploads come, nothing else would show it. */
  async tryAgain(): Promise<void> {
    const { store, keys, node } = this.parts
    if (!store.isFailing('write') || store.restMs('write') > 0) return
    await putBytes(store, keys.trial(node), Buffer.from(node), false, this.#abort.signal)
  }

  /** Resolves with the name of the group when the store has it, with a refusal when it does not. Never rejects but for bugs. */
  put(item: StorableItem): Promise<string | Refusal> {
    const refusal = this.refusal
    if (refusal !== undefined) return Promise.resolve(refusal)
    if (item.sizeBytes > largeBytes) return this.#large.run(() => this.#putLarge(item))
    return new Promise((done) => {
      this.#waiting.push({ item, done, sinceMs: this.parts.clock.monotonic() })
      this.#waitingBytes += item.sizeBytes
      this.#schedule()
    })
  }

  /** Gives up what is under way: nobody hears of it. */
  async stop(): Promise<void> {
    this.#abort.abort()
    this.#timer?.cancel()
    const left = this.#waiting.splice(0)
    for (const { done } of left) done(refuse('busy', 'self', 'the service ends'))
    await Promise.all(this.#underway)
  }

  #schedule(): void {
    if (this.#waiting.length === 0 || this.#underway.size >= groupsMax || this.#abort.signal.aborted) return
    const isFull = this.#waitingBytes >= groupMaxBytes || this.#waiting.length >= groupItemsMax
    const waitMs = isFull ? 0 : this.#beganMs + gatherMs - this.parts.clock.monotonic()
    if (waitMs > 0) {
      this.#timer ??= this.parts.clock.after(waitMs, () => {
        this.#timer = undefined
        this.#begin()
      })
      return
    }
    this.#begin()
  }

  #begin(): void {
    if (this.#waiting.length === 0 || this.#underway.size >= groupsMax) return
    this.#beganMs = this.parts.clock.monotonic()
    const batch = this.#take()
    const running = this.#putGroup(batch).finally(() => {
      this.#underway.delete(running)
      this.#schedule()
    })
    this.#underway.add(running)
    this.#schedule()
  }

  #take(): Waiting[] {
    let [count, bytes, metaBytes] = [0, 0, 0]
    for (const { item } of this.#waiting) {
      if (count > 0 && bytes + item.sizeBytes > groupMaxBytes) break
      if (count >= groupItemsMax || (count > 0 && metaBytes + item.meta.length > groupMetaMaxBytes)) break
      count += 1
      bytes += item.sizeBytes
      metaBytes += item.meta.length
    }
    this.#waitingBytes -= bytes
    return this.#waiting.splice(0, count)
  }

  /** What cannot be read out of the log keeps nothing else from the store. */
  async #putGroup(batch: readonly Waiting[]): Promise<void> {
    this.#firsts.add(batch[0])
    for (let left = batch; left.length > 0; ) {
      const outcomes = await this.#put(left.map(({ item }) => item))
      for (const [at, outcome] of outcomes) left[at]?.done(outcome)
      left = left.filter((_, at) => !outcomes.has(at))
    }
    this.#firsts.delete(batch[0])
  }

  /** Outcomes by the number of the item: of all, or of those alone that cannot be read; nothing was put then. */
  async #put(items: readonly StorableItem[]): Promise<ReadonlyMap<number, string | Refusal>> {
    const head = encodeGroupHead(items, this.parts.secret)
    const totalBytes = items.reduce((sum, { sizeBytes }) => sum + sizeBytes, head.bytes.length)
    const bytes = Buffer.allocUnsafeSlow(totalBytes)
    bytes.set(head.bytes, 0)
    const errors = readLogInto(this.parts.logFolder, items, head.offsets, bytes)
    if (errors.size > 0) return new Map([...errors].map(([at, error]) => [at, diskRefusal(error)]))
    const content = { sizeBytes: totalBytes, sha256: sha256Of(bytes), bytes: () => [bytes] }
    const { store, keys } = this.parts
    const { signal } = this.#abort
    const put = (name: string): ReturnType<typeof store.put> =>
      store.put(keys.group(name), content, { signal })
    const outcome = await this.#putNamed(head, totalBytes, items, put)
    return new Map(items.map((_, at) => [at, outcome]))
  }

  /** An object of its own, in parts where it is long: read from the disk as the store takes it. */
  async #putLarge(item: StorableItem): Promise<string | Refusal> {
    const head = encodeGroupHead([item], this.parts.secret)
    const totalBytes = head.bytes.length + item.sizeBytes
    if (totalBytes <= partsFromBytes) return (await this.#put([item])).get(0) ?? behind
    const { largeStore, keys, logFolder } = this.parts
    const { signal } = this.#abort
    let handle: FileHandle | undefined
    try {
      const file = await open(`${logFolder}/${logFileName(item.place.file)}`, 'r')
      handle = file
      const read = (start: number, length: number): Promise<Uint8Array> =>
        readBehind(head.bytes, { ...item.place, handle: file }, start, length)
      const content = { sizeBytes: totalBytes, read }
      return await this.#putNamed(head, totalBytes, [item], (name) =>
        largeStore.putLarge(keys.group(name), content, signal),
      )
    } catch (error) {
      if (codeOf(error) === undefined) throw error
      return diskRefusal(error)
    } finally {
      await handle?.close()
    }
  }

  async #putNamed(
    head: GroupHead,
    totalBytes: number,
    items: readonly StorableItem[],
    put: (name: string) => Promise<'put' | 'exists' | Refusal>,
  ): Promise<string | Refusal> {
    const { clock, largeStore, node, onDoubt, count } = this.parts
    const [only] = items
    const isOnly = only !== undefined && only.sizeBytes > largeBytes
    const name = encodeGroupName({
      ...(isOnly ? { only } : {}),
      atMs: clock.now() + largeStore.aheadMs,
      directoryBytes: head.directoryBytes,
      headBytes: head.bytes.length,
      totalBytes,
      random: randomBytes(8).toString('hex'),
      node,
    })
    let outcome = await put(name)
    // A kept connection may have been closed meanwhile. What hangs is not waited for twice.
    if (isRefusal(outcome) && outcome.refused !== 'late' && this.refusal === undefined)
      outcome = await put(name)
    count(isRefusal(outcome) ? 'failed' : 'put', items.length)
    if (!isRefusal(outcome)) return name
    onDoubt(name)
    return refuse('busy', 'self', outcome.message)
  }
}

/** Bytes of a head and of a file behind it, as one. */
async function readBehind(
  head: Uint8Array,
  { file, offset, handle }: LogPlace & { readonly handle: FileHandle },
  start: number,
  length: number,
): Promise<Uint8Array> {
  const bytes = Buffer.allocUnsafeSlow(length)
  const front = head.subarray(start, start + length)
  bytes.set(front, 0)
  for (let at = front.length; at < length; ) {
    const position = offset + start + at - head.length
    const { bytesRead } = await handle.read(bytes, at, length - at, position)
    if (bytesRead === 0) throw cutLogError(file)
    at += bytesRead
  }
  return bytes
}
