import { randomBytes } from 'node:crypto'
import { sha256Of } from '../../../native/digest/digest.js'
import type { Clock } from '../../actor/clock.js'
import { Gathered } from '../../format/gathered.js'
import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { ObjectStore } from '../objects/object-store.js'
import type { ListingPublisher } from './listing-publisher.js'
import type { LocalObject } from './local-object.js'
import { entriesUsualMax, type PackEntry, packMaxBytes } from './pack-format.js'
import type { TierKeys } from './tier-keys.js'

/** A pack that is filled, in memory. */
export class OpenPack {
  #entries = new Map<Id, PackEntry>()
  #parts: Uint8Array[] = []
  #sizeBytes = 0
  #sinceMs = 0
  /** Its name, where its bytes are in the store already. */
  #stored: string | undefined

  constructor(
    private readonly store: ObjectStore,
    private readonly keys: TierKeys,
    private readonly publisher: ListingPublisher,
    private readonly clock: Clock,
  ) {}

  get count(): number {
    return this.#entries.size
  }

  /** Bytes of all objects in it. */
  get sizeBytes(): number {
    return this.#sizeBytes
  }

  /** Milliseconds since the first object came into it; 0 where it is empty. */
  get ageMs(): number {
    return this.#entries.size === 0 ? 0 : this.clock.monotonic() - this.#sinceMs
  }

  has(id: Id): boolean {
    return this.#entries.has(id)
  }

  /** False: another object of this size must wait for the next pack. */
  hasRoom(sizeBytes: number): boolean {
    const isOpen = this.#stored === undefined && this.#entries.size < entriesUsualMax
    return isOpen && this.#sizeBytes + sizeBytes <= packMaxBytes
  }

  async add(id: Id, object: LocalObject): Promise<void> {
    const gathered = new Gathered(object.sizeBytes)
    for await (const piece of object.bytes()) gathered.add(piece)
    const { dataStart, contentType, root, sizeBytes } = object
    const entry = { id, offset: this.#sizeBytes, sizeBytes, dataStart, contentType }
    if (this.#entries.size === 0) this.#sinceMs = this.clock.monotonic()
    this.#entries.set(id, root === undefined ? entry : { ...entry, root })
    this.#parts.push(gathered.bytes())
    this.#sizeBytes += sizeBytes
  }

  /**
   * Puts the pack, then its directory under the next number. What is refused stays for the next attempt. Resolves with the number
   * of objects, of which the records know then.
   */
  async flush(signal: AbortSignal): Promise<number | Refusal> {
    const count = this.#entries.size
    if (count === 0) return 0
    const stored = await this.#put(signal)
    if (isRefusal(stored)) return stored
    const listed = await this.publisher.publish(
      { pack: stored, entries: [...this.#entries.values()] },
      signal,
    )
    if (isRefusal(listed)) return listed
    this.clear()
    return count
  }

  /** The bytes of the pack, under a name of its own. */
  async #put(signal: AbortSignal): Promise<string | Refusal> {
    if (this.#stored !== undefined) return this.#stored
    const name = randomBytes(16).toString('hex')
    const bytes = Buffer.concat(this.#parts, this.#sizeBytes)
    const content = { sizeBytes: bytes.length, sha256: sha256Of(bytes), bytes: () => [bytes] }
    const put = await this.store.put(this.keys.pack(name), content, { signal })
    if (isRefusal(put)) return put
    this.#stored = name
    this.#parts = []
    return name
  }

  /** Gives up what is in it, to be read anew. */
  clear(): void {
    this.#entries = new Map()
    this.#parts = []
    this.#sizeBytes = 0
    this.#stored = undefined
  }
}
