import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, linkSync, openSync, unlinkSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { makeFolder, readSmall } from './folder.js'

/**
 * The text of a secret that is kept in the file `path`, of mode 0600; `make` gives it where the file is missing. The file is
 * whole or not there, and all threads and processes that ask at once get the same text. Throws the system's error.
 */
export function keptSecret(path: string, make: () => string): string {
  const existing = read(path)
  if (existing !== undefined) return existing
  create(path, make())
  // Another thread may have been faster; its text counts then.
  return readSmall(path)
}

function read(path: string): string | undefined {
  try {
    return readSmall(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function create(path: string, text: string): void {
  makeFolder(dirname(path))
  const draft = `${path}.${randomBytes(8).toString('hex')}`
  const file = openSync(draft, 'wx', 0o600)
  try {
    writeFileSync(file, text)
    fsyncSync(file)
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    closeSync(file)
    unlinkSync(draft)
  }
}
