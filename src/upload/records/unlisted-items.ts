import { type Id, idBytes, idOfBytes } from '../../format/id.js'
import type { Environment, Table } from '../../store/lmdb.js'

const none = new Uint8Array(0)

/** Ids of accepted items that the other machines of a cluster may not know of yet. */
export class UnlistedItems {
  readonly #ids: Table

  constructor(environment: Environment) {
    this.#ids = environment.table('unlisted')
  }

  /** Only inside a `write` of the environment, as `remove`. */
  put(id: Id): void {
    this.#ids.put(idBytes(id), none)
  }

  remove(id: Id): void {
    this.#ids.remove(idBytes(id))
  }

  has(id: Id): boolean {
    return this.#ids.get(idBytes(id)) !== undefined
  }

  some(limit: number): Id[] {
    return [...this.#ids.keys({ limit })].map((key) => idOfBytes(key))
  }
}
