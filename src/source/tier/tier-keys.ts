import type { Id } from '../../format/id.js'
import { parseId } from '../../format/id.js'

/**
 * Keys of the store. `PREFIX/ID` is where ar-io-node looks, too: with an empty prefix the key begins with a slash. Ours are
 * below `PREFIX/sluice/`.
 */
export class TierKeys {
  constructor(private readonly prefix: string) {}

  /** An object of its own. */
  object(id: Id): string {
    return `${this.prefix}/${id}`
  }

  /** What all keys begin with. */
  get all(): string {
    return `${this.prefix}/`
  }

  /** The id that a key is for; undefined where it is none. */
  idOf(key: string): Id | undefined {
    return key.startsWith(this.all) ? parseId(key.slice(this.all.length)) : undefined
  }

  get marker(): string {
    return `${this.prefix}/sluice/store.json`
  }

  pack(name: string): string {
    return `${this.prefix}/sluice/packs/${name}`
  }

  /** The key of the directory with this number. */
  directory(number: number): string {
    return `${this.prefix}/sluice/directory/${String(number).padStart(10, '0')}`
  }
}
