import { open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { synced } from '../store/synced.js'

/**
 * Replaces a file atomically: readers see the old or the new content, also after a crash. It has one writer, so a
 * draft that a killed one left is overwritten. Rejects where writing fails.
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
