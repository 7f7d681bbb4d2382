import { randomBytes } from 'node:crypto'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { ObjectStore } from '../objects/object-store.js'
import { putBytes, wholeObject } from '../objects/small-objects.js'
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
    const found = await store.get(keys.marker, undefined, { signal })
    if (isRefusal(found) && (found.refused !== 'unknown' || attempt > 0)) return found
    if (isRefusal(found)) {
      const made: TierMarker = { format: 1, store: randomBytes(16).toString('hex'), network }
      const put = await putBytes(store, keys.marker, Buffer.from(JSON.stringify(made)), true, signal)
      if (isRefusal(put)) return put
      continue
    }
    const bytes = await wholeObject(found, markerMaxBytes)
    if (isRefusal(bytes)) return bytes
    const marker = parsed(bytes)
    if (marker?.format !== 1 || typeof marker.store !== 'string') return 'newer format'
    if (marker.network !== network) return 'other network'
    const again = await putBytes(store, keys.marker, bytes, true, signal)
    if (again === 'put') return 'no conditional writes'
    return { marker: { format: 1, store: marker.store, network }, isReadOnly: isRefusal(again) }
  }
}
