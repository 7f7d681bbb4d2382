import { closeSync, openSync, writeSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { isDiskError } from '../src/store/disk-error.js'

/** Writes a file at `path` until nothing more fits onto its disk. Throws what is no error of a disk. */
export function fillDisk(path: string): void {
  const file = openSync(path, 'w')
  for (let size = 1_048_576; size > 1000; size /= 4) {
    try {
      for (;;) writeSync(file, Buffer.alloc(size))
    } catch (error) {
      if (!isDiskError(error)) throw error
    }
  }
  closeSync(file)
}

/** The same, while this process does other things: it may have relays or clients of the machine whose disk it is. */
export async function fillDiskBeside(path: string): Promise<void> {
  const file = await open(path, 'w')
  try {
    for (let size = 1_048_576; size > 1000; size /= 4) {
      try {
        for (;;) await file.write(Buffer.alloc(size))
      } catch (error) {
        if (!isDiskError(error)) throw error
      }
    }
  } finally {
    await file.close()
  }
}
