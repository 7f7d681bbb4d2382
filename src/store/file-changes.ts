import { statSync, watch } from 'node:fs'

/** So long after a change a file counts as changed: two changes in one tick of the file system's clock have one time. */
const settledMs = 2000

/** So many questions in a row may find the same: file systems of other machines may show changes late, or not at all. */
const sameMax = 20

/**
 * Whether a file may have changed since the last question, for those who look several times a second into a database that other
 * threads and processes write: the system's word on a file costs a twentieth of a read transaction. Every commit of LMDB writes
 * into its file, and so moves the time.
 */
export class FileChanges {
  #seen: string | undefined
  #same = 0

  constructor(private readonly path: string) {}

  /** `nowMs`: the time of day. True also where the file is missing, and now and then. */
  mayHaveChanged(nowMs: number): boolean {
    const found = statSync(this.path, { throwIfNoEntry: false })
    const seen = found === undefined ? undefined : `${found.ino} ${found.size} ${found.mtimeMs}`
    const isSame = seen !== undefined && seen === this.#seen
    this.#seen = seen
    this.#same = isSame ? this.#same + 1 : 0
    return this.#same % sameMax === 0 || nowMs - (found?.mtimeMs ?? 0) < settledMs
  }
}

/**
 * Calls `act` soon after something was written into a file, by whichever program: then nobody needs to look often. Where the
 * system cannot tell (no inotify left, some file systems) nothing is called, so that one still looks now and then.
 */
export function hearWrites(path: string, act: () => void): { cancel(): void } {
  let isDue = false
  let isOver = false
  const once = (): void => {
    // A commit writes several times.
    if (isDue) return
    isDue = true
    setImmediate(() => {
      isDue = false
      if (!isOver) act()
    })
  }
  try {
    const watcher = watch(path, { persistent: false }, once)
    watcher.on('error', () => watcher.close())
    return {
      cancel() {
        isOver = true
        watcher.close()
      },
    }
  } catch {
    return { cancel: () => undefined }
  }
}
