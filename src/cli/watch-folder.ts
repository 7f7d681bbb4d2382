import { watch } from 'node:fs'
import { pause } from '../actor/clock.js'

/** Changes within so many milliseconds are one. */
const togetherMs = 500

/**
 * Yields once at the start, and then whenever something below a folder has changed since the last time, until `stop` fires.
 * Nothing that happens while the reader works is missed.
 */
export async function* changesOf(folder: string, stop: AbortSignal): AsyncGenerator<void> {
  let changed = true
  let wake: () => void = () => undefined
  const noticed = (): void => {
    changed = true
    wake()
  }
  let isBroken = false
  // Folders that vanish while they are looked at end the watcher of some releases of Node.
  const begin = () =>
    watch(folder, { recursive: true }, noticed).on('error', () => {
      isBroken = true
      noticed()
    })
  let watcher = begin()
  stop.addEventListener('abort', noticed)
  try {
    for (let isFirst = true; ; isFirst = false) {
      if (!changed)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      if (!isFirst) await pause(togetherMs, stop)
      if (stop.aborted) return
      if (isBroken) {
        watcher.close()
        watcher = begin()
        isBroken = false
      }
      changed = false
      yield
    }
  } finally {
    stop.removeEventListener('abort', noticed)
    watcher.close()
  }
}
