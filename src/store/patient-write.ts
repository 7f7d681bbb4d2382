import { pause } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { isDiskError } from './disk-error.js'

const againMs = 1000

/**
 * Does `write`, and waits for a disk that is full or fails: it is tried again each second, until the disk takes it. For what has
 * happened already, so that there is nobody to refuse it to. False: the service ends (`closing`), and the next process writes it
 * down. Rejects with any other error.
 */
export async function writePatiently(
  write: () => void,
  closing: AbortSignal,
  say: Pick<Log, 'error' | 'info'>,
): Promise<boolean> {
  for (let tries = 0; ; tries += 1) {
    try {
      write()
      if (tries > 0) say.info({ tries }, 'the disk takes changes again')
      return true
    } catch (error) {
      if (!isDiskError(error)) throw error
      if (tries === 0) say.error({ err: error }, 'the disk is full or fails: changes wait')
    }
    await pause(againMs, closing)
    if (closing.aborted) return false
  }
}
