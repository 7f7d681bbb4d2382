import type { Id } from '../../format/id.js'
import type { TransferStart } from '../transfer-start.js'

/** Payloads that wait so: beyond, whoever brings one waits for its commit. Each takes some 2 KiB. */
const waitingMax = 8192

/**
 * Payloads that lie in a segment, whole and judged, and of which the catalog has not heard yet: commits are made for many at
 * once, and until then who asks for one is answered from here. Nothing of it outlives the process, nor does the payload's record.
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
