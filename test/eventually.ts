import { pause, systemClock } from '../src/actor/clock.js'

/** Of a program on a busy machine the threads that nobody waits for may get no processor for more than a minute. */
const patienceMs = 200_000

/** Waits until `look` gives something; fails the test where nothing comes for minutes. */
export async function eventually<T>(
  look: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  const end = systemClock.monotonic() + patienceMs
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    if (systemClock.monotonic() > end) throw new Error('it did not happen')
    await pause(5)
  }
}
