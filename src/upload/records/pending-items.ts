import { encodeBase64url } from '../../format/base64url.js'
import type { Id } from '../../format/id.js'
import type { Environment } from '../../store/lmdb.js'
import type { PendingMarks } from './pending-marks.js'

/** What an item is known by. */
interface Known {
  readonly id: Id
  readonly owner: string
  /** SHA-256 of the payload, base64url. */
  readonly digest?: string
  /** Name of the reservation of its price, where that is not its id. */
  readonly heldAs?: string
}

/** Writes the rows of pending items (`ItemTableWriter`). */
export interface PendingWriter<Item> {
  /** Whether it is too late for the row of an item. */
  isOverdue(item: Item): boolean
  /** Called with such an item when it is pending no more. */
  leftOut(item: Item): void
  /** Called inside a transaction, which may be undone and run again: so only tables may change. */
  writeRows(items: readonly Item[]): void
  /** Called after the transaction with these rows was committed. */
  rowsCommitted(items: readonly Item[]): void
}

/**
 * Items that were accepted, and that the tables do not show yet. A kill loses none of them, because the log has them. On the
 * thread that writes, these are looked at before the tables; other threads have `PendingMarks`.
 */
export class PendingItems<Item extends Known> {
  readonly #byId = new Map<Id, Item>()
  /** Keyed by owner and digest of the payload: the last one. */
  readonly #byContent = new Map<string, Id>()
  readonly #byReservation = new Map<string, Id>()
  #writer: PendingWriter<Item> | undefined
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
    if (item.heldAs !== undefined) this.#byReservation.set(item.heldAs, item.id)
  }

  find(id: Id): Item | undefined {
    return this.#byId.get(id)
  }

  ofContent(owner: string, digest: Uint8Array): Id | undefined {
    return this.count === 0 ? undefined : this.#byContent.get(owner + encodeBase64url(digest))
  }

  /** The item whose price is reserved under this name (`heldAs`). */
  ofReservation(name: string): Id | undefined {
    return this.#byReservation.get(name)
  }

  /** Sets who writes the rows. To be called before the first `add`. */
  useWriter(writer: PendingWriter<Item>): void {
    this.#writer = writer
  }

  /**
   * The same environment, with a `write` that writes pending items first, in the same transaction. So a transaction finds each of
   * them in the tables, and its own changes are not overwritten.
   */
  writtenFirst(environment: Environment): Environment {
    return { ...environment, write: (act) => this.#writeFirst(environment, act) }
  }

  #writeFirst<T>(environment: Environment, act: () => T): T {
    // A transaction inside of one: that of its caller has written them.
    if (this.#isWriting || this.count === 0) return environment.write(act)
    this.#isWriting = true
    try {
      this.#leaveOut()
      const items = [...this.#byId.values()]
      const outcome = environment.write(() => {
        this.#writer?.writeRows(items)
        return act()
      })
      this.#byId.clear()
      this.#byContent.clear()
      this.#byReservation.clear()
      this.marks?.allWritten()
      this.#writer?.rowsCommitted(items)
      return outcome
    } finally {
      this.#isWriting = false
    }
  }

  /** What may not be written any more is as if it had never been pending. Its mark stays until all are written. */
  #leaveOut(): void {
    for (const item of this.#byId.values()) {
      if (this.#writer?.isOverdue(item) !== true) continue
      this.#byId.delete(item.id)
      const content = item.owner + (item.digest ?? '')
      if (this.#byContent.get(content) === item.id) this.#byContent.delete(content)
      if (this.#byReservation.get(item.heldAs ?? '') === item.id)
        this.#byReservation.delete(item.heldAs ?? '')
      this.#writer.leftOut(item)
    }
  }
}
