import { createHash } from 'node:crypto'
import { isRefusal, type Refusal, refuse } from '../../src/format/refusal.js'
import type {
  LargeContent,
  ObjectBody,
  ObjectContent,
  ObjectHead,
  ObjectPage,
  ObjectStore,
} from '../../src/source/objects/object-store.js'
import type { Window } from '../../src/source/source-messages.js'

interface Held extends ObjectHead {
  readonly bytes: Buffer
}

/** Objects in memory, for tests of what stands on a store. `calls` counts what was asked. */
export class MemoryObjects implements ObjectStore {
  readonly objects = new Map<string, Held>()
  readonly calls = { get: 0, head: 0, put: 0, list: 0, remove: 0 }
  /** Answers instead, where it gives something. */
  fails: (operation: keyof MemoryObjects['calls'], key: string) => Refusal | undefined = () => undefined

  async get(key: string, window: Window | undefined): Promise<ObjectBody | Refusal> {
    const held = this.#held('get', key)
    if (isRefusal(held)) return held
    const { bytes, ...head } = held
    const drop = (): void => undefined
    if (window === undefined) return { ...head, body: inPieces(bytes), drop }
    const { start } = window
    if (start >= held.sizeBytes) return refuse('unsatisfiable', 'client', 'outside')
    const end = Math.min(window.end, held.sizeBytes - 1)
    return { ...head, part: { start, end }, body: inPieces(bytes.subarray(start, end + 1)), drop }
  }

  async head(key: string): Promise<ObjectHead | Refusal> {
    const held = this.#held('head', key)
    if (isRefusal(held)) return held
    const { bytes: _bytes, ...head } = held
    return head
  }

  async put(key: string, content: ObjectContent): Promise<'put' | 'exists' | Refusal> {
    this.calls.put += 1
    const failed = this.fails('put', key)
    if (failed !== undefined) return failed
    const pieces: Uint8Array[] = []
    for await (const piece of content.bytes()) pieces.push(piece)
    const bytes = Buffer.concat(pieces)
    const isRight = createHash('sha256').update(bytes).digest().equals(content.sha256)
    if (!isRight || bytes.length !== content.sizeBytes)
      return refuse('upstream', 'upstream', 'the object store answered 400 XAmzContentSHA256Mismatch')
    if (content.isNew === true && this.objects.has(key)) return 'exists'
    const { contentType, metadata = {} } = content
    const type = { contentType: contentType ?? 'application/octet-stream' }
    this.objects.set(key, { sizeBytes: bytes.length, metadata, bytes, ...type })
    return 'put'
  }

  readonly aheadMs = 0

  async putLarge(key: string, content: LargeContent): Promise<'put' | Refusal> {
    const bytes = Buffer.from(await content.read(0, content.sizeBytes))
    const sha256 = createHash('sha256').update(bytes).digest()
    const done = await this.put(key, { sizeBytes: bytes.length, sha256, bytes: () => [bytes] })
    return done === 'exists' ? 'put' : done
  }

  async dropParts(): Promise<number> {
    return 0
  }

  async list(prefix: string, after: string | undefined): Promise<ObjectPage | Refusal> {
    this.calls.list += 1
    const failed = this.fails('list', prefix)
    if (failed !== undefined) return failed
    const all = [...this.objects.keys()]
      .filter((key) => key.startsWith(prefix))
      .sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)))
      .filter((key) => after === undefined || Buffer.compare(Buffer.from(key), Buffer.from(after)) > 0)
    return { keys: all.slice(0, 1000), hasMore: all.length > 1000 }
  }

  async remove(key: string): Promise<'removed' | Refusal> {
    this.calls.remove += 1
    const failed = this.fails('remove', key)
    if (failed !== undefined) return failed
    this.objects.delete(key)
    return 'removed'
  }

  async close(): Promise<void> {
    this.objects.clear()
  }

  #held(operation: 'get' | 'head', key: string): Held | Refusal {
    this.calls[operation] += 1
    return this.fails(operation, key) ?? this.objects.get(key) ?? refuse('unknown', 'client', 'Not found')
  }
}

async function* inPieces(bytes: Buffer): AsyncGenerator<Uint8Array, undefined> {
  for (let at = 0; at < bytes.length; at += 65_536) yield bytes.subarray(at, at + 65_536)
  return undefined
}

/** A bucket that outlives the machines: closing it does nothing. */
export function lastingObjects(): MemoryObjects {
  const objects = new MemoryObjects()
  objects.close = async () => undefined
  return objects
}
