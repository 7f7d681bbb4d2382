import type { Environment } from '../../src/store/lmdb.js'

/** A database whose disk can be full: a transaction then runs to its end, and is undone. */
export interface FailingDisk {
  readonly environment: Environment
  isFull: boolean
  /** Transactions that were undone. */
  undone: number
}

export function failingDisk(sound: Environment): FailingDisk {
  const disk: FailingDisk = {
    isFull: false,
    undone: 0,
    environment: {
      ...sound,
      write: (act) =>
        sound.write(() => {
          const outcome = act()
          if (!disk.isFull) return outcome
          disk.undone += 1
          throw Object.assign(new Error('No space left on device'), { code: 28 })
        }),
    },
  }
  return disk
}
