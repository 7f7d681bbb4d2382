import { readdirSync, readlinkSync } from 'node:fs'

/** Paths of the files that this process has open and that begin with `start`, once for each descriptor. */
export function openFiles(start: string): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${fd}`)
      return path.startsWith(start) ? [path] : []
    } catch (error) {
      // Closed meanwhile, as the descriptor that reads the folder is.
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
      throw error
    }
  })
}
