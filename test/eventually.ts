import { availableParallelism, loadavg } from 'node:os'
import { inspect } from 'node:util'
import { pause, systemClock } from '../src/actor/clock.js'

/** Enough for each wait where every program has a processor; the longest timers of the program that tests wait for take 30 s. */
const patienceMs = 60_000
/** Beside many others the threads that nobody waits for may get no processor for more than a minute. */
const longestPatienceMs = 200_000
/** So long after the start of the wait the next look is as far off again as this share of it, up to the longest pause. */
const share = 0.05
const [shortestMs, longestMs] = [5, 100]

/** The patience where as many programs as now want this machine's processors: so much later comes what one of them does. */
function patienceNow(load = loadavg()[0] ?? 0, processors = availableParallelism()): number {
  return Math.min(longestPatienceMs, patienceMs * Math.max(1, load / processors))
}

type Look<T> = () => T | undefined | false | Promise<T | undefined | false>

/**
 * Waits until `look` gives something. Otherwise the error names `what` did not come, and the last that `seen` shows. What takes
 * longer is looked at less often: a look takes time of the program that is waited for.
 */
export async function eventually<T>(what: string, look: Look<T>, seen?: () => unknown): Promise<T> {
  const beganMs = systemClock.monotonic()
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    const waitedMs = systemClock.monotonic() - beganMs
    if (waitedMs > patienceNow()) {
      const last = seen === undefined ? '' : `; at last: ${inspect(seen(), { depth: 4, breakLength: 120 })}`
      throw new Error(`it did not happen in ${Math.round(waitedMs / 1000)} s: ${what}${last}`)
    }
    await pause(Math.min(longestMs, Math.max(shortestMs, waitedMs * share)))
  }
}
