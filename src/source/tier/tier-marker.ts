import { randomBytes } from 'node:crypto'
import { sha256Of } from '../../../native/digest/digest.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { ObjectBody, ObjectStore } from '../objects/object-store.js'
import type { TierKeys } from './tier-keys.js'
import type { TierMismatch } from './tier-state.js'

/** Which store this is, and whose: `PREFIX/sluice/store.json`. */
export interface TierMarker {
  readonly format: 1
  /** Random; another one where the bucket was replaced. */
  readonly store: string
  /** `mainnet` or `devnet`. */
  readonly network: string
}

const markerMaxBytes = 4096

/** All bytes of an object; a refusal where it breaks off, or has more than `maxBytes`. */
export async function wholeObject(found: ObjectBody, maxBytes: number): Promise<Buffer | Refusal> {
  if (found.sizeBytes > maxBytes) {
    found.drop()
    return refuse('upstream', 'upstream', 'an object of the store is too long')
  }
  const pieces: Uint8Array[] = []
  let sizeBytes = 0
  for await (const piece of found.body) {
    if (isRefusal(piece)) return piece
    pieces.push(piece)
    sizeBytes += piece.length
    if (sizeBytes > maxBytes) return refuse('upstream', 'upstream', 'an object of the store is too long')
  }
  if (sizeBytes < found.sizeBytes) return refuse('upstream', 'upstream', 'an object of the store broke off')
  return Buffer.concat(pieces)
}

function parsed(
  bytes: Buffer,
): { readonly format?: unknown; store?: unknown; network?: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/**
 * Reads the marker, or writes it where there is none. Then it is written once more, with the same bytes, on the condition that
 * there is none: a store that does that would let two machines take one number for their directories. A refusal: the store could
 * not be reached, or the marker not be written. `isReadOnly`: there is one, and nothing may be written.
 */
export async function readMarker(
  store: ObjectStore,
  keys: TierKeys,
  network: string,
  signal: AbortSignal,
): Promise<{ readonly marker: TierMarker; readonly isReadOnly: boolean } | TierMismatch | Refusal> {
  for (let attempt = 0; ; attempt += 1) {
    const found = await store.get(keys.marker, undefined, signal)
    if (isRefusal(found) && (found.refused !== 'unknown' || attempt > 0)) return found
    if (isRefusal(found)) {
      const made: TierMarker = { format: 1, store: randomBytes(16).toString('hex'), network }
      const put = await putNew(store, keys.marker, Buffer.from(JSON.stringify(made)), signal)
      if (isRefusal(put)) return put
      continue
    }
    const bytes = await wholeObject(found, markerMaxBytes)
    if (isRefusal(bytes)) return bytes
    const marker = parsed(bytes)
    if (marker?.format !== 1 || typeof marker.store !== 'string') return 'newer format'
    if (marker.network !== network) return 'other network'
    const again = await putNew(store, keys.marker, bytes, signal)
    if (again === 'put') return 'no conditional writes'
    return { marker: { format: 1, store: marker.store, network }, isReadOnly: isRefusal(again) }
  }
}

function putNew(
  store: ObjectStore,
  key: string,
  bytes: Buffer,
  signal: AbortSignal,
): Promise<'put' | 'exists' | Refusal> {
  const content = { sizeBytes: bytes.length, sha256: sha256Of(bytes), bytes: () => [bytes], isNew: true }
  return store.put(key, content, signal)
}
