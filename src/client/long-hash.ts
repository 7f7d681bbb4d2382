import type { AsideHash } from './aside-hash.js'
import { isHashNative, runningHash } from './hash.js'

/**
 * Size from which hashing on another thread is faster. Waking a thread for each piece costs more than native hashing up to a few
 * MiB. Slower hashing gains from smaller sizes on.
 */
export const asideBytesMin = isHashNative ? 8 * 1024 * 1024 : 256 * 1024

/** SHA-384 of about `size` bytes that come in pieces: by another thread where they are many. Loaded by those only. */
export async function longSha384(size: number): Promise<AsideHash> {
  const aside = size < asideBytesMin ? undefined : await (await import('./aside-hash.js')).asideSha384()
  return aside ?? sha384Here()
}

/** The same by this thread. */
export function sha384Here(): AsideHash {
  const hash = runningHash('sha384')
  return {
    update: (piece) => void hash.update(piece),
    digest: async () => hash.digest(),
    drop: () => undefined,
  }
}
