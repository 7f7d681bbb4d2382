import { type Environment, openEnvironment, present, type Table } from '../store/lmdb.js'

/** Each takes some 200 bytes of memory. */
export const pinsMax = 100_000

const keyOf = (digest: Uint8Array): string => Buffer.from(digest).toString('latin1')

/** Content that stays on disk whatever room is needed, by the SHA-256 of its bytes: what an operator said, on disk. */
export class Pins {
  readonly #environment: Environment
  readonly #table: Table
  readonly #known = new Set<string>()

  /** Throws where the folder cannot be used. */
  constructor(path: string) {
    this.#environment = openEnvironment(path, 1)
    this.#table = this.#environment.table('pins')
    for (const key of this.#table.keys({})) this.#known.add(keyOf(key))
  }

  get count(): number {
    return this.#known.size
  }

  has(digest: Uint8Array): boolean {
    return this.#known.size > 0 && this.#known.has(keyOf(digest))
  }

  /** False: there are too many. It outlives a kill when this returns. */
  set(digest: Uint8Array, isPinned: boolean): boolean {
    if (this.has(digest) === isPinned) return true
    if (isPinned && this.#known.size >= pinsMax) return false
    this.#environment.write(() => {
      if (isPinned) this.#table.put(digest, present)
      else this.#table.remove(digest)
    })
    if (isPinned) this.#known.add(keyOf(digest))
    else this.#known.delete(keyOf(digest))
    return true
  }

  async close(): Promise<void> {
    await this.#environment.close()
  }
}
