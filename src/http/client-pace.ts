import type { Pace } from './exchange.js'

/** The pace of so many bytes in `ms`. What is younger than a second counts as one: at its beginning nobody has sent much. */
export function clientPace(bytes: number, ms: number): Pace {
  return { bytesPerSecond: bytes / Math.max(1, ms / 1000), ms }
}
