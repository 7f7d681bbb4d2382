import { pause } from '../src/actor/clock.js'

/** Waits until `look` gives something; fails the test after half a minute. */
export async function eventually<T>(
  look: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  for (let attempt = 0; attempt < 6000; attempt += 1) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    await pause(5)
  }
  throw new Error('it did not happen')
}
