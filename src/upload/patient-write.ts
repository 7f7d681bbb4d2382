import { pause } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Refusal } from '../format/refusal.js'
import { isDiskError } from '../store/lmdb.js'
import { diskRefusal } from '../store/segments/disk.js'

const againMs = 1000

/** Does `write` once. Refusal (busy): the disk is full or fails, and nothing was written. Throws any other error. */
export function tryWrite(write: () => void): Refusal | undefined {
  try {
    write()
    return undefined
  } catch (error) {
    if (!isDiskError(error)) throw error
    return diskRefusal(error)
  }
}

/**
 * Does `write`, a transaction of the upload service's tables, and waits for a disk that is full or fails: it is tried again each
 * second, until the disk takes it. What it writes down has happened already, so that there is nobody to refuse it to. False: the
 * service ends (`closing`), and the next process writes it down. Rejects with any other error.
 */
export async function writePatiently(
  write: () => void,
  closing: AbortSignal,
  say: Pick<Log, 'error' | 'info'>,
): Promise<boolean> {
  for (let tries = 0; ; tries += 1) {
    try {
      write()
      if (tries > 0) say.info({ tries }, 'the disk of the upload service takes changes again')
      return true
    } catch (error) {
      if (!isDiskError(error)) throw error
      if (tries === 0)
        say.error({ err: error }, 'the disk of the upload service is full or fails: changes wait')
    }
    await pause(againMs, closing)
    if (closing.aborted) return false
  }
}
