import { inspect } from 'node:util'
import { pause, systemClock } from '../src/actor/clock.js'

/** Of a program on a busy machine the threads that nobody waits for may get no processor for more than a minute. */
const patienceMs = 200_000
/** So long after the start of the wait the next look is as far off again as this share of it, up to the longest pause. */
const share = 0.05
const [shortestMs, longestMs] = [5, 100]

type Look<T> = () => T | undefined | false | Promise<T | undefined | false>

/**
 * Waits until `look` gives something. Otherwise the error names `what` did not come, and the last that `seen` shows; without a
 * name, the text of `look`. What takes longer is looked at less often: a look takes time of the program that is waited for.
 */
export async function eventually<T>(what: string, look: Look<T>, seen?: () => unknown): Promise<T>
export async function eventually<T>(look: Look<T>): Promise<T>
export async function eventually<T>(
  named: string | Look<T>,
  given?: Look<T>,
  seen?: () => unknown,
): Promise<T> {
  const look = typeof named === 'string' ? given : named
  if (look === undefined) throw new Error('nothing to look at')
  const what = typeof named === 'string' ? named : String(look).replace(/\s+/g, ' ')
  const beganMs = systemClock.monotonic()
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    const waitedMs = systemClock.monotonic() - beganMs
    if (waitedMs > patienceMs) {
      const last = seen === undefined ? '' : `; at last: ${inspect(seen(), { depth: 4, breakLength: 120 })}`
      throw new Error(`it did not happen in ${Math.round(waitedMs / 1000)} s: ${what}${last}`)
    }
    await pause(Math.min(longestMs, Math.max(shortestMs, waitedMs * share)))
  }
}
