import type { Requester } from '../../actor/requester.js'
import type { Refusal } from '../../format/refusal.js'
import { refuse } from '../../format/refusal.js'
import type { ObjectBody, ObjectStore } from '../../source/objects/object-store.js'
import type { Window } from '../../source/source-messages.js'

/** Bytes of all objects that are held, at most. */
const heldMaxBytes = 16 * 1024 * 1024

/** Small objects that were read as a whole a moment ago: what is read of them next costs no request. */
export class RecentObjects {
  /** The oldest first. */
  readonly #held = new Map<string, Buffer>()
  #bytes = 0

  constructor(private readonly store: Pick<ObjectStore, 'get'>) {}

  hold(key: string, bytes: Buffer): void {
    this.drop(key)
    this.#held.set(key, bytes)
    this.#bytes += bytes.length
    for (const [oldest] of this.#held) {
      if (this.#bytes <= heldMaxBytes) return
      this.drop(oldest)
    }
  }

  drop(key: string): void {
    const held = this.#held.get(key)
    if (held === undefined) return
    this.#held.delete(key)
    this.#bytes -= held.length
  }

  async get(key: string, window: Window | undefined, requester: Requester): Promise<ObjectBody | Refusal> {
    const held = this.#held.get(key)
    if (held === undefined) return this.store.get(key, window, requester)
    const { start, end } = window ?? { start: 0, end: held.length - 1 }
    if (start >= held.length) return refuse('unsatisfiable', 'client', 'the range is outside of the content')
    const part = { start, end: Math.min(end, held.length - 1) }
    return {
      sizeBytes: held.length,
      metadata: {},
      ...(window === undefined ? {} : { part }),
      body: once(held.subarray(part.start, part.end + 1)),
      drop: () => undefined,
    }
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array, undefined> {
  yield bytes
  return undefined
}
