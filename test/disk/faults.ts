import { spawnSync } from 'node:child_process'
import { closeSync, openSync, readFileSync, readSync, writeFileSync, writeSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Kinds of calls, in the order of their bits; see faults.c. */
export const kinds = ['write', 'sync', 'size', 'create', 'rename', 'link', 'folder'] as const

export type DiskFault = 'ENOSPC' | 'EIO'

/** Which calls fail. */
export interface FaultWish {
  /** One of so many, chosen by `seed`; 0: none. */
  readonly oneOf: number
  readonly seed?: number
  readonly fault?: DiskFault
  /** This call alone fails, counted from 1; `oneOf` does not matter then. */
  readonly alone?: number
  /** Of writes only those below so many bytes fail. */
  readonly belowBytes?: number
  /** Nobody sleeps in a call. */
  readonly sleepless?: boolean
  /** Absent: all kinds. */
  readonly kinds?: readonly (typeof kinds)[number][]
}

/** A disk below a folder that fails as a test says: for programs that are started with `environment`. */
export interface FaultyDisk {
  readonly environment: Readonly<Record<string, string>>
  set(wish: FaultWish): void
  /** Calls so far, and those that failed. */
  counts(): { readonly calls: number; readonly failed: number }
  /** One line for each that failed: count, kind, errno, path. */
  log(): string[]
  close(): void
}

const words = 11

/**
 * Builds the library that fails calls below `folder`; what it needs lies in `beside`, which is outside. A text: why there is none
 * (no compiler of C).
 */
export function faultyDisk(folder: string, beside: string): FaultyDisk | string {
  const source = fileURLToPath(new URL('../../../test/disk/faults.c', import.meta.url))
  const library = join(beside, 'faults.so')
  const flags = ['-Wall', '-Wextra', '-O1', '-fPIC', '-shared', '-o', library, source, '-ldl']
  const built = spawnSync('cc', flags, { encoding: 'utf8' })
  if (built.error !== undefined) return 'there is no compiler of C'
  if (built.status !== 0) throw new Error(built.stderr)
  const [control, log] = [join(beside, 'control'), join(beside, 'failed')]
  writeFileSync(control, Buffer.alloc(words * 8))
  writeFileSync(log, '')
  const file = openSync(control, 'r+')
  const put = (at: number, value: number): void => {
    const word = Buffer.alloc(8)
    word.writeBigUInt64LE(BigInt(value))
    writeSync(file, word, 0, 8, at * 8)
  }
  const get = (at: number): number => {
    const word = Buffer.alloc(8)
    readSync(file, word, 0, 8, at * 8)
    return Number(word.readBigUInt64LE())
  }
  return {
    environment: {
      LD_PRELOAD: library,
      FAULTS_FOLDER: folder,
      FAULTS_CONTROL: control,
      FAULTS_LOG: log,
    },
    set({
      oneOf,
      seed = 0,
      fault = 'EIO',
      kinds: wanted = kinds,
      alone = 0,
      belowBytes = 0,
      sleepless = false,
    }) {
      put(1, 0)
      put(8, 0)
      put(2, seed)
      put(3, constants.errno[fault])
      put(
        4,
        wanted.reduce((bits, kind) => bits | (1 << kinds.indexOf(kind)), 0),
      )
      put(9, belowBytes)
      put(10, sleepless ? 1 : 0)
      put(1, oneOf)
      put(8, alone)
    },
    counts: () => ({ calls: get(0), failed: get(5) }),
    log: () =>
      readFileSync(log, 'utf8')
        .split('\n')
        .filter((line) => line !== ''),
    close: () => closeSync(file),
  }
}
