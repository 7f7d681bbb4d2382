import { encodeBase64url } from '../../format/base64url.js'
import type { Id } from '../../format/id.js'
import type { Environment } from '../../store/lmdb.js'
import type { PendingMarks } from './pending-marks.js'

/** By what an item is known. */
interface Known {
  readonly id: Id
  readonly owner: string
  /** SHA-256 of the payload, base64url. */
  readonly digest?: string
  /** Name under which its price is held back, where that is not its id. */
  readonly heldAs?: string
}

/**
 * Writes items down, inside a transaction. That may be undone, and run again: so nothing but tables changes. What it gives is
 * called when the transaction is committed.
 */
export type WriteItems<Item> = (items: readonly Item[]) => () => void

/**
 * Items that were accepted, and that the tables do not show yet. A kill loses none of them, because the log has them. On the
 * thread that writes, these are looked at before the tables; other threads have `PendingMarks`.
 */
export class PendingItems<Item extends Known> {
  readonly #byId = new Map<Id, Item>()
  /** By owner and digest of the payload: the last one. */
  readonly #byContent = new Map<string, Id>()
  readonly #byHold = new Map<string, Id>()
  #write: WriteItems<Item> | undefined
  #isWriting = false

  constructor(private readonly marks?: PendingMarks) {
    // What an earlier thread left is read out of the log.
    marks?.allWritten()
  }

  get count(): number {
    return this.#byId.size
  }

  add(item: Item): void {
    this.marks?.add(item.id)
    this.#byId.set(item.id, item)
    if (item.digest !== undefined) this.#byContent.set(item.owner + item.digest, item.id)
    if (item.heldAs !== undefined) this.#byHold.set(item.heldAs, item.id)
  }

  find(id: Id): Item | undefined {
    return this.#byId.get(id)
  }

  ofContent(owner: string, digest: Uint8Array): Id | undefined {
    return this.count === 0 ? undefined : this.#byContent.get(owner + encodeBase64url(digest))
  }

  /** The item whose price is held back under this name. */
  ofHold(name: string): Id | undefined {
    return this.#byHold.get(name)
  }

  writtenBy(write: WriteItems<Item>): void {
    this.#write = write
  }

  /**
   * The environment for all writers. A transaction writes pending items first, so that it finds each of them in the tables, and
   * its own changes are not overwritten.
   */
  before(environment: Environment): Environment {
    return { ...environment, write: (act) => this.#written(environment, act) }
  }

  #written<T>(environment: Environment, act: () => T): T {
    // A transaction inside of one: that of its caller has written them.
    if (this.#isWriting || this.count === 0) return environment.write(act)
    this.#isWriting = true
    let committed: (() => void) | undefined
    try {
      const outcome = environment.write(() => {
        committed = this.#write?.([...this.#byId.values()])
        return act()
      })
      this.#byId.clear()
      this.#byContent.clear()
      this.#byHold.clear()
      this.marks?.allWritten()
      committed?.()
      return outcome
    } finally {
      this.#isWriting = false
    }
  }
}
