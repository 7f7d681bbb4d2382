import { open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { synced } from '../store/synced.js'

/**
 * Replaces a file: whoever reads it sees the old or the new one, whole, whatever happens to this process. It has one writer:
 * what a killed one left beside it is written over. Rejects where the disk refuses.
 */
export async function replaceFile(path: string, content: string | Uint8Array): Promise<void> {
  const draft = `${path}.new`
  const file = await open(draft, 'w', 0o600)
  try {
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(draft, path)
  await synced(dirname(path))
}
