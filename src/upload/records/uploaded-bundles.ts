import type { Id } from '../../format/id.js'
import type { Environment, Table } from '../../store/lmdb.js'
import { acceptedItem, innerItem, openUploadTables } from './uploads.js'

/** Which uploaded bundle an item lies in that was not uploaded on its own, for threads that only read. */
export class UploadedBundles {
  readonly #environment: Environment
  readonly #items: Table
  readonly #inner: Table

  constructor(tablesPath: string) {
    this.#environment = openUploadTables(tablesPath)
    this.#items = this.#environment.table('items')
    this.#inner = this.#environment.table('inner')
  }

  /** The bundle; undefined where the item was uploaded on its own, or not here. */
  of(id: Id): Id | undefined {
    this.#environment.refresh()
    if (acceptedItem(this.#items, id) !== undefined) return undefined
    return innerItem(this.#inner, id)?.parent
  }

  close(): Promise<void> {
    return this.#environment.close()
  }
}
