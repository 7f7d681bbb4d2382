import { randomBytes } from 'node:crypto'
import { open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Replaces a small file: whoever reads it sees the old or the new one. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const draft = `${path}.${randomBytes(8).toString('hex')}`
  const file = await open(draft, 'wx', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(draft, path)
  const folder = await open(dirname(path), 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
