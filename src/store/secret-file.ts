import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readdirSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { makeFolder, readSmall } from './folder.js'
import { syncNow } from './synced.js'

/** Ends of the names of drafts (`drafted`). */
const draftShape = /\.[0-9a-f]{16}$/

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

/**
 * Puts `text` in the place of a secret, of mode 0600; a killed process leaves the old one or the new one. With `oldPath` the
 * old one stays under that name. On disk on return. Throws the system's error.
 */
export function replaceSecret(path: string, text: string, oldPath?: string): void {
  const draft = drafted(path, text)
  try {
    if (oldPath !== undefined) linkSync(path, oldPath)
    renameSync(draft, path)
  } catch (error) {
    unlinkSync(draft)
    throw error
  }
  syncNow(dirname(path))
}

/** Removes drafts in a folder that killed processes left. Nobody may write there meanwhile. Throws the system's error. */
export function removeDrafts(folder: string): void {
  if (!existsSync(folder)) return
  for (const name of readdirSync(folder)) if (draftShape.test(name)) unlinkSync(join(folder, name))
}

/** A file beside `path` that nobody else writes, on disk. A disk that refuses it leaves nothing. */
function drafted(path: string, text: string): string {
  makeFolder(dirname(path))
  const draft = `${path}.${randomBytes(8).toString('hex')}`
  const file = openSync(draft, 'wx', 0o600)
  try {
    writeFileSync(file, text)
    fsyncSync(file)
  } catch (error) {
    unlinkSync(draft)
    throw error
  } finally {
    closeSync(file)
  }
  return draft
}

function create(path: string, text: string): void {
  const draft = drafted(path, text)
  try {
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    unlinkSync(draft)
  }
}
