import { sha256Of } from '../../../native/digest/digest.js'
import { bufferOf } from '../../format/buffer-of.js'
import { Gathered } from '../../format/gathered.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { ObjectBody, ObjectStore } from './object-store.js'

/** All bytes of an object; a refusal where it breaks off, or has more than `maxBytes`. */
export async function wholeObject(found: ObjectBody, maxBytes: number): Promise<Buffer | Refusal> {
  if (found.sizeBytes > maxBytes) {
    found.drop()
    return refuse('upstream', 'upstream', 'an object of the store is too long')
  }
  const gathered = new Gathered(found.sizeBytes)
  for await (const piece of found.body) {
    if (isRefusal(piece)) return piece
    gathered.add(piece)
    if (gathered.sizeBytes > maxBytes)
      return refuse('upstream', 'upstream', 'an object of the store is too long')
  }
  if (gathered.sizeBytes < found.sizeBytes)
    return refuse('upstream', 'upstream', 'an object of the store broke off')
  return bufferOf(gathered.bytes())
}

/** Puts an object that is in memory. `exists`: only with `isNew`, where there is one already. */
export function putBytes(
  store: Pick<ObjectStore, 'put'>,
  key: string,
  bytes: Uint8Array,
  isNew: boolean,
  signal: AbortSignal,
): Promise<'put' | 'exists' | Refusal> {
  const content = { sizeBytes: bytes.length, sha256: sha256Of(bytes), bytes: () => [bytes] }
  return store.put(key, isNew ? { ...content, isNew } : content, { signal })
}

/** Pages of keys that begin with `prefix`, from behind `after` on. A refusal is the last. */
export async function* keysOf(
  store: Pick<ObjectStore, 'list'>,
  prefix: string,
  after: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<readonly string[] | Refusal, void, undefined> {
  for (let behind = after; ; ) {
    const page = await store.list(prefix, behind, signal)
    if (isRefusal(page)) {
      yield page
      return
    }
    yield page.keys
    behind = page.keys.at(-1)
    if (!page.hasMore || behind === undefined) return
  }
}
