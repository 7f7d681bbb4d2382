import type { Id } from '../../format/id.js'
import type { TransferStart } from '../transfer-start.js'

/** Payloads that wait so: beyond, whoever brings one waits for its commit. Each takes some 2 KiB. */
const waitingMax = 8192

/**
 * Complete and checked payloads in segments that the catalog does not have yet, because commits are made for many at once. Until
 * then requests for them are answered from here. It is lost at the end of the process, and so is the payload's record.
 */
export class Uncommitted {
  readonly #openings = new Map<Id, TransferStart>()

  get(id: Id): TransferStart | undefined {
    return this.#openings.get(id)
  }

  /** True: no more of them should wait. */
  get isFull(): boolean {
    return this.#openings.size > waitingMax
  }

  note(opening: TransferStart): void {
    this.#openings.set(opening.attributes.id, opening)
  }

  /** The catalog has heard of it, or never will. */
  forget(opening: TransferStart): void {
    const { id } = opening.attributes
    if (this.#openings.get(id) === opening) this.#openings.delete(id)
  }
}
