import { type Id, idBytes, idOfBytes } from '../../format/id.js'
import { GroupCommit } from '../../ledger/group.js'
import { tryWrite } from '../../store/disk-error.js'
import type { Environment, Table } from '../../store/lmdb.js'
import { paymentAway, refusalAnswer, type UploadAnswer } from '../requests/upload-answers.js'

/** Changes of one transaction at most. */
const changesMax = 1000

/** The whole row of an item that was accepted: its credits must be settled. */
const accepted = new Uint8Array(0)
/** Begins the row of an item whose credits may be reserved, and that is not accepted yet. The ticket of its order follows. */
const reservedMark = Uint8Array.of(1)

/** A row to write, with the ticket of the order; or one to remove. */
type Change = { readonly id: Id; readonly ticket: Uint8Array } | { readonly id: Id; readonly isOver: true }

function tableIn(environment: Environment): Table {
  return environment.table('unsettled')
}

/** Records that the credits of an accepted item must be settled. Only inside a `write` of the environment. */
export function recordUnsettled(environment: Environment, id: Id): void {
  tableIn(environment).put(idBytes(id), accepted)
}

/**
 * The items whose credits are reserved and neither settled nor refunded, on disk: what a process leaves, the next one settles or
 * refunds. Changes of one turn of the loop are one transaction.
 */
export class UnsettledItems {
  readonly #table: Table
  /** Resolves with an answer where the change was not written. */
  readonly #changes: GroupCommit<Change, UploadAnswer | undefined>
  /** Over, but a full disk kept their rows: the next transaction removes them. */
  readonly #removable = new Set<Id>()

  /** `closing`: nothing is written any more; rows that remain are settled or refunded again by the next process. */
  constructor(
    private readonly environment: Environment,
    private readonly closing: AbortSignal,
  ) {
    this.#table = tableIn(environment)
    this.#changes = new GroupCommit(async (changes) => this.#commit(changes), changesMax)
  }

  /** Writes down that credits may be reserved by the order with this ticket. An answer: the disk refuses. */
  recordOrder(id: Id, ticket: Uint8Array): Promise<UploadAnswer | undefined> {
    return this.#changes.add({ id, ticket })
  }

  /** The credits of the item are settled or refunded, or none were reserved. */
  async remove(id: Id): Promise<void> {
    await this.#changes.add({ id, isOver: true })
  }

  /** The same for an accepted item. Only inside a `write` of the environment. */
  removeNow(id: Id): void {
    this.#table.remove(idBytes(id))
  }

  /** What an earlier process has left. `ticket`: of an item that it may not have accepted; empty in rows of older releases. */
  left(): readonly { readonly id: Id; readonly ticket: Uint8Array | undefined }[] {
    const rows = this.#table.from(undefined, Number.MAX_SAFE_INTEGER)
    return rows.map(({ key, value }) => ({ id: idOfBytes(key), ticket: ticketIn(value) }))
  }

  /** Whether the item still has the row with this ticket. */
  hasTicket(id: Id, ticket: Uint8Array): boolean {
    const value = this.#table.get(idBytes(id))
    const now = value === undefined ? undefined : ticketIn(value)
    return now !== undefined && Buffer.compare(now, ticket) === 0
  }

  #commit(changes: readonly Change[]): (UploadAnswer | undefined)[] {
    if (this.closing.aborted) return changes.map(({ id }) => paymentAway(id))
    for (const change of changes) if ('isOver' in change) this.#removable.add(change.id)
    const write = (): void =>
      this.environment.write(() => {
        for (const id of this.#removable) this.#table.remove(idBytes(id))
        for (const change of changes)
          if ('ticket' in change)
            this.#table.put(idBytes(change.id), Buffer.concat([reservedMark, change.ticket]))
      })
    const refusal = tryWrite(write)
    if (refusal === undefined) this.#removable.clear()
    return changes.map(() => (refusal === undefined ? undefined : refusalAnswer(refusal)))
  }
}

/** A copy of the ticket in a row; undefined: the item was accepted. */
function ticketIn(value: Uint8Array): Uint8Array | undefined {
  return value.length === 0 ? undefined : Uint8Array.from(value.subarray(reservedMark.length))
}
