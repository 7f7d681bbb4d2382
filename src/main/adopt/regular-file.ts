import { statSync } from 'node:fs'

/** Whether a path, links followed, names a regular file. Opening a pipe can block for ever, and a device has no end. */
export function isRegularFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true
}
