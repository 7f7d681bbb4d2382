import { isId } from '../format/id.js'
import { type FileKey, keyText } from './folder-index.js'
import type { ResumeStore } from './resume-store.js'

/** What was uploaded as one item, or as an item within one. */
export interface KeptUpload {
  readonly id: string
  /** The item that the service was sent: a bundle around this one, or this one itself. */
  readonly carrier: string
}

/**
 * The uploads to one service that a store has recorded: with it a half-done folder goes on, whatever indexes know. Uploads to
 * other services are not in it, and whether an upload is still there has to be requested.
 */
export class Journal {
  /** `service`: names the service and its key, so that one that was set up anew at the same address is another. */
  constructor(
    private readonly store: ResumeStore,
    private readonly owner: string,
    private readonly service: string,
  ) {}

  #name(key: FileKey): string {
    return `file:${this.service}:${this.owner}:${keyText(key)}`
  }

  /** Keyed by `keyText` of those keys that it knows. */
  async find(keys: readonly FileKey[]): Promise<ReadonlyMap<string, KeptUpload>> {
    const { store } = this
    const names = keys.map((key) => this.#name(key))
    const known = await store.getMany?.(names)
    const found = new Map<string, KeptUpload>()
    for (const [at, key] of keys.entries()) {
      const name = names[at] ?? ''
      const text = known === undefined ? await store.get(name) : known.get(name)
      const [id = '', carrier = id] = text?.split(' ') ?? []
      if (isId(id) && isId(carrier)) found.set(keyText(key), { id, carrier })
    }
    return found
  }

  /** Remembers what went in one item. */
  async remember(uploaded: readonly (readonly [key: FileKey, id: string])[], carrier: string): Promise<void> {
    const { store } = this
    const values = new Map(
      uploaded.map(([key, id]) => [this.#name(key), id === carrier ? id : `${id} ${carrier}`]),
    )
    if (store.setMany !== undefined && values.size > 1) return store.setMany(values)
    for (const [key, text] of values) await store.set(key, text)
  }
}
