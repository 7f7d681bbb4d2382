import type { AsideHash } from './aside-hash.js'
import { runningHash } from './hash.js'

/** From so many bytes on, messages to another thread cost less than hashing here. */
export const asideBytesMin = 256 * 1024

/** SHA-384 of about `size` bytes that come in pieces: by another thread where they are many. Loaded by those only. */
export async function longSha384(size: number): Promise<AsideHash> {
  const aside = size < asideBytesMin ? undefined : await (await import('./aside-hash.js')).asideSha384()
  if (aside !== undefined) return aside
  const hash = runningHash('sha384')
  return {
    update: (piece) => void hash.update(piece),
    digest: async () => hash.digest(),
    drop: () => undefined,
  }
}
