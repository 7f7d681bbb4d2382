import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { ObjectStore } from '../../source/objects/object-store.js'
import { wholeObject } from '../../source/objects/small-objects.js'
import type { DurableLog } from '../../store/segments/durable-log.js'
import type { LogPlace } from '../../store/segments/log-file.js'
import { decodeGroupHead, groupHeadMaxBytes, type SealedEntry } from './group-format.js'
import { SplitCheck } from './split-check.js'
import { decodeGroupName, type StoredKeys } from './stored-keys.js'

/** `foreign`: malformed, or not sealed by this service. */
export type HeadOutcome = readonly SealedEntry[] | 'foreign' | 'gone' | Refusal

const forged = refuse('forged', 'upstream', 'a group of uploads has other bytes than its head says')

/** Brings accepted items back out of the store: nothing is believed that this service has not sealed. */
export class GroupReader {
  constructor(
    private readonly store: ObjectStore,
    private readonly keys: StoredKeys,
    private readonly itemLog: DurableLog,
    private readonly secret: Uint8Array,
    private readonly signal: AbortSignal,
  ) {}

  async head(group: string): Promise<HeadOutcome> {
    const name = decodeGroupName(group)
    if (name === undefined || name.headBytes > groupHeadMaxBytes) return 'foreign'
    const { headBytes, totalBytes } = name
    const found = await this.store.get(
      this.keys.group(group),
      { start: 0, end: headBytes - 1 },
      { signal: this.signal },
    )
    if (isRefusal(found)) return found.refused === 'unknown' ? 'gone' : found
    const { part } = found
    if (found.sizeBytes !== totalBytes || part === undefined) {
      found.drop()
      return 'foreign'
    }
    const bytes = await wholeObject({ ...found, sizeBytes: part.end - part.start + 1 }, groupHeadMaxBytes)
    if (isRefusal(bytes)) return bytes
    return decodeGroupHead(bytes, totalBytes, this.secret) ?? 'foreign'
  }

  /** Puts the items of a group into the log again, durable when it resolves. A refusal (`forged`): they are not what was kept. */
  async bring(group: string, entries: readonly SealedEntry[]): Promise<LogPlace[] | Refusal> {
    const [first, last] = [entries[0], entries.at(-1)]
    if (first === undefined || last === undefined) return []
    const window = { start: first.offset, end: last.offset + last.sizeBytes - 1 }
    const found = await this.store.get(this.keys.group(group), window, { signal: this.signal })
    if (isRefusal(found)) return found
    return this.#kept(new Pieces(found.body[Symbol.asyncIterator]()), first.offset, entries)
  }

  /** The same for one item; undefined: the group has none of this id, or is gone. */
  async one(group: string, id: Id): Promise<LogPlace | Refusal | undefined> {
    const entries = await this.head(group)
    if (isRefusal(entries)) return entries
    const entry = typeof entries === 'string' ? undefined : entries.find((one) => one.id === id)
    const places = entry && (await this.bring(group, [entry]))
    return isRefusal(places) ? places : places?.[0]
  }

  async #kept(pieces: Pieces, start: number, entries: readonly SealedEntry[]): Promise<LogPlace[] | Refusal> {
    const places: LogPlace[] = []
    let at = start
    try {
      for (const entry of entries) {
        const skipped = await pieces.take(entry.offset - at, () => undefined)
        const place = isRefusal(skipped) ? skipped : await this.#item(pieces, entry)
        if (isRefusal(place)) {
          for (const one of places) this.itemLog.release(one)
          return place
        }
        places.push(place)
        at = entry.offset + entry.sizeBytes
      }
    } finally {
      await pieces.close()
    }
    return places
  }

  async #item(pieces: Pieces, entry: SealedEntry): Promise<LogPlace | Refusal> {
    const draft = this.itemLog.draft()
    const check = new SplitCheck(entry.digest)
    const outcome = await pieces.take(entry.sizeBytes, (bytes) => {
      check.update(bytes)
      return draft.write(bytes)
    })
    const wrong = isRefusal(outcome) ? outcome : check.isRight() ? undefined : forged
    if (wrong === undefined) return draft.finish(entry.digest, entry.meta)
    await draft.discard()
    return wrong
  }
}

/** A body that is read in stretches. */
class Pieces {
  #left: Uint8Array = new Uint8Array(0)

  constructor(private readonly inner: AsyncIterator<Uint8Array | Refusal>) {}

  /** Gives the next `length` bytes to `act`, in pieces. */
  async take(
    length: number,
    act: (bytes: Uint8Array) => undefined | Refusal | Promise<undefined | Refusal>,
  ): Promise<undefined | Refusal> {
    for (let missing = length; missing > 0; ) {
      if (this.#left.length === 0) {
        const step = await this.inner.next()
        if (step.done === true) return refuse('upstream', 'upstream', 'a group of uploads broke off')
        if (isRefusal(step.value)) return step.value
        this.#left = step.value
        continue
      }
      const bytes = this.#left.subarray(0, missing)
      this.#left = this.#left.subarray(bytes.length)
      missing -= bytes.length
      const refusal = await act(bytes)
      if (refusal !== undefined) return refusal
    }
    return undefined
  }

  async close(): Promise<void> {
    await this.inner.return?.()
  }
}
