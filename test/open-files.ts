import { readdirSync, readlinkSync } from 'node:fs'

/** Paths of the files below a folder that this process has open, once for each descriptor. */
export function openFilesBelow(folder: string): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${fd}`)
      return path.startsWith(folder) ? [path] : []
    } catch (error) {
      // Closed meanwhile, as the descriptor that reads the folder is.
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
      throw error
    }
  })
}
