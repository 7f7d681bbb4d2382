import { randomBytes } from 'node:crypto'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { ObjectStore } from '../../source/objects/object-store.js'
import { putBytes, wholeObject } from '../../source/objects/small-objects.js'
import type { Uploads } from '../records/uploads.js'
import type { StoredKeys } from './stored-keys.js'

/** `own`: this disk's; `new`: there is none on this disk, which is new, or was lost; `taken`: another machine has the name. */
export type NodeState = 'own' | 'new' | 'taken'

const word = 'stored-claim'
const claimMaxBytes = 256

/**
 * Which disk a machine's name in the bucket belongs to: a random text, in an object and in the tables. A machine with an empty
 * disk takes the name over; one that comes back with the old disk finds another text, and accepts nothing under this name.
 */
export class NodeClaim {
  readonly #key: string
  readonly #fresh = randomBytes(16).toString('hex')

  constructor(
    private readonly store: ObjectStore,
    keys: StoredKeys,
    private readonly uploads: Pick<Uploads, 'environment' | 'value' | 'putValue'>,
    readonly node: string,
  ) {
    this.#key = keys.node(node)
  }

  /** The name that this disk had last; undefined: it had none. */
  static nameIn(uploads: Pick<Uploads, 'value'>): string | undefined {
    return uploads.value(word)?.split(' ')[0]
  }

  /** What the tables have for this name. */
  get #own(): string | undefined {
    const [node, text] = this.uploads.value(word)?.split(' ') ?? []
    return node === this.node ? text : undefined
  }

  /** Looks, and writes the object where there is none, or where it is taken over. */
  async take(signal: AbortSignal): Promise<NodeState | Refusal> {
    const own = this.#own
    const found = await this.#read(signal)
    if (isRefusal(found) && found.refused !== 'unknown') return found
    if (own !== undefined && !isRefusal(found)) return found === own ? 'own' : 'taken'
    const text = own ?? this.#fresh
    const put = await this.#put(text, own !== undefined, signal)
    if (isRefusal(put)) return put
    if (put === 'exists') return 'taken'
    return own === undefined ? 'new' : 'own'
  }

  /** After `take` was `new`: all that was accepted under this name is on this disk, too. Throws where the disk refuses. */
  recovered(): void {
    if (this.#own !== undefined) return
    const { uploads, node } = this
    uploads.environment.write(() => uploads.putValue(word, `${node} ${this.#fresh}`))
  }

  /** Whether another machine has taken the name over meanwhile. */
  async isTaken(signal: AbortSignal): Promise<boolean | Refusal> {
    const found = await this.#read(signal)
    if (isRefusal(found)) return found.refused === 'unknown' ? false : found
    return found !== (this.#own ?? this.#fresh)
  }

  async #read(signal: AbortSignal): Promise<string | Refusal> {
    const found = await this.store.get(this.#key, undefined, { signal })
    if (isRefusal(found)) return found
    const bytes = await wholeObject(found, claimMaxBytes)
    return isRefusal(bytes) ? bytes : bytes.toString('latin1')
  }

  #put(text: string, isNew: boolean, signal: AbortSignal): Promise<'put' | 'exists' | Refusal> {
    return putBytes(this.store, this.#key, Buffer.from(text), isNew, signal)
  }
}
