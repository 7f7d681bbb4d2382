import { latin1Text } from '../../format/latin1-text.js'
import { isDiskError } from '../../store/disk-error.js'
import { type Environment, openEnvironment, present, type Table } from '../../store/lmdb.js'

/** Each takes some 200 bytes of memory. */
export const pinsMax = 100_000

/**
 * Content that stays on disk whatever room is needed, by the SHA-256 of its bytes: as an operator ordered. Content that
 * is a window of a bundle keeps the bundle there. Each entry: digest -> digest of the bundle, or nothing.
 */
export class Pins {
  readonly #environment: Environment
  readonly #table: Table
  /** Key of the content -> key of the bundle that holds it, '' where it has bytes of its own. */
  readonly #known = new Map<string, string>()
  /** Key of a bundle -> how many pinned contents it holds. */
  readonly #bundles = new Map<string, number>()

  /** Throws where the folder cannot be used. */
  constructor(path: string) {
    this.#environment = openEnvironment(path, 1)
    this.#table = this.#environment.table('pins')
    for (const { key, value } of this.#table.span({})) this.#note(latin1Text(key), latin1Text(value))
  }

  get count(): number {
    return this.#known.size
  }

  /** Whether these bytes must stay: they are pinned, or hold content that is. */
  has(digest: Uint8Array): boolean {
    if (this.#known.size === 0) return false
    const key = latin1Text(digest)
    return this.#known.has(key) || this.#bundles.has(key)
  }

  /**
   * Pins content, or lets it go. `bundle`: digest of the bundle that holds its bytes. False: there are too many, or the disk
   * does not take it. It outlives a kill when this returns.
   */
  set(digest: Uint8Array, isPinned: boolean, bundle: Uint8Array = present): boolean {
    const key = latin1Text(digest)
    const holder = isPinned ? latin1Text(bundle) : undefined
    const before = this.#known.get(key)
    if (before === holder) return true
    if (isPinned && before === undefined && this.#known.size >= pinsMax) return false
    try {
      this.#environment.write(() => {
        if (isPinned) this.#table.put(digest, bundle)
        else this.#table.remove(digest)
      })
    } catch (error) {
      if (isDiskError(error)) return false
      throw error
    }
    this.#forget(key)
    if (holder !== undefined) this.#note(key, holder)
    return true
  }

  #note(key: string, holder: string): void {
    this.#known.set(key, holder)
    if (holder !== '') this.#bundles.set(holder, (this.#bundles.get(holder) ?? 0) + 1)
  }

  #forget(key: string): void {
    const holder = this.#known.get(key)
    this.#known.delete(key)
    if (holder === undefined || holder === '') return
    const left = (this.#bundles.get(holder) ?? 0) - 1
    if (left > 0) this.#bundles.set(holder, left)
    else this.#bundles.delete(holder)
  }

  async close(): Promise<void> {
    await this.#environment.close()
  }
}
