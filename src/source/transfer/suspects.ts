import { BoundedMap } from '../../actor/bounded-map.js'
import type { Id } from '../../format/id.js'

/** Some 100 bytes each. */
const idsMax = 65_536

/**
 * Ids under which somebody sent bytes that must not be served. What they mean is nobody's word but the chain's, so they are not
 * blocked: but no byte of them is shown from then on before all of them were judged.
 */
export class Suspects {
  readonly #ids = new BoundedMap<Id, true>(idsMax)

  has(id: Id): boolean {
    return this.#ids.has(id)
  }

  add(id: Id): void {
    this.#ids.set(id, true)
  }

  /** Its bytes were judged and are others. */
  clear(id: Id): void {
    this.#ids.delete(id)
  }
}
