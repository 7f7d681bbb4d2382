import type { Clock } from '../../actor/clock.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { GuardedObjects } from '../../source/objects/guarded-objects.js'
import { isDiskError, tryWrite } from '../../store/disk-error.js'
import type { Uploads } from '../records/uploads.js'
import type { StoredKeys } from './stored-keys.js'

export interface EndedGroupsParts {
  readonly store: GuardedObjects
  readonly keys: StoredKeys
  /** The name of this machine. */
  readonly node: string
  readonly uploads: Uploads
  readonly clock: Clock
  readonly signal: AbortSignal
  /** 10,000 unless given. */
  readonly doubtMs: number | undefined
  readonly onRefused: (what: string, refusal: Refusal) => void
  readonly onWell: (what: string) => void
  readonly onDiskError: (error: unknown) => void
}

const notRemoved = 'permanent uploads cannot be removed from the object store'
/** A store that hung carries PUTs out when it goes on: what is in doubt is removed when it has been well for so long. */
const usualDoubtMs = 10_000
/** Groups that are removed in one go. */
const removedAtOnce = 64

/** Groups of uploads that leave the object store: all of their items are permanent, or were refused. */
export class EndedGroups {
  /** The store has these or not: it did not answer in time. */
  readonly #doubts = new Set<string>()
  /** Since when the store answers again, by the monotonic clock; undefined: it failed last. */
  #wellMs: number | undefined
  #removing: Promise<void> | undefined

  constructor(private readonly parts: EndedGroupsParts) {}

  /** The store has the group or not, and its uploaders were refused. */
  doubt(group: string): void {
    const { uploads } = this.parts
    this.#doubts.add(group)
    this.#wellMs = undefined
    // Where the disk refuses, the next start finds a group without rows.
    tryWrite(() => uploads.environment.write(() => uploads.stored.end(group)))
  }

  /** Another machine has them. */
  forgetDoubts(): void {
    this.#doubts.clear()
  }

  /** Removes all that ended, where that is not under way. What fails is done by the next call. Never rejects for the disk. */
  remove(): Promise<void> {
    this.#removing ??= this.#remove().finally(() => {
      this.#removing = undefined
    })
    return this.#removing
  }

  /** Resolves when nothing is under way any more. */
  async settled(): Promise<void> {
    await this.#removing
  }

  async #remove(): Promise<void> {
    const { uploads, store, keys, signal } = this.parts
    const isWell = this.#doubts.size === 0 || (await this.#isWell())
    const isDue = (group: string): boolean => isWell || !this.#doubts.has(group)
    for (;;) {
      const groups = uploads.stored.ended(this.#doubts.size + removedAtOnce).filter(isDue)
      if (groups.length === 0 || signal.aborted) return
      for (const group of groups) {
        const done = await store.remove(keys.group(group), signal)
        if (isRefusal(done)) {
          this.parts.onRefused(notRemoved, done)
          return
        }
      }
      this.parts.onWell(notRemoved)
      try {
        uploads.environment.write(() => {
          for (const group of groups) uploads.stored.removed(group)
        })
        for (const group of groups) this.#doubts.delete(group)
      } catch (error) {
        if (!isDiskError(error)) throw error
        this.parts.onDiskError(error)
        return
      }
    }
  }

  /** Whether the store has answered for so long that what hung in it is carried out. */
  async #isWell(): Promise<boolean> {
    const { store, keys, node, clock, signal, doubtMs = usualDoubtMs } = this.parts
    const seen = await store.head(keys.node(node), signal)
    if (isRefusal(seen)) {
      this.#wellMs = undefined
      return false
    }
    this.#wellMs ??= clock.monotonic()
    return clock.monotonic() - this.#wellMs >= doubtMs
  }
}
