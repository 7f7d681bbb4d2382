import { closeSync, constants, mkdirSync, openSync, readSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/**
 * Makes a folder and those above it that are missing. Throws the system's error. Not Node's own way: below a file system that
 * takes no folders and says that something is missing (/proc) that one never ends, and no signal is heard meanwhile.
 */
export function makeFolder(path: string, mode = 0o700): void {
  const missing: string[] = []
  let above = resolve(path)
  for (; statSync(above, { throwIfNoEntry: false }) === undefined; above = dirname(above)) missing.push(above)
  // What is there already must be a folder: with an ending slash the system says so.
  statSync(`${above}/`)
  for (const one of missing.reverse()) makeOne(one, mode)
}

/** Another thread may have been faster. */
function makeOne(path: string, mode: number): void {
  try {
    mkdirSync(path, { mode })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/**
 * The text of a small file that an operator named. Throws the system's error, or that it is larger than `maxBytes`. A pipe or a
 * device makes nobody wait: it is read as far as it gives something at once.
 */
export function readSmall(path: string, maxBytes = 65_536): string {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const bytes = Buffer.alloc(maxBytes + 1)
    let length = 0
    while (length < bytes.length) {
      const count = readSync(file, bytes, length, bytes.length - length, null)
      if (count === 0) break
      length += count
    }
    if (length > maxBytes) throw Object.assign(new Error('it is too large'), { code: 'EFBIG' })
    return bytes.toString('utf8', 0, length)
  } finally {
    closeSync(file)
  }
}
