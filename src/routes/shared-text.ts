import type { Clock } from '../actor/clock.js'

/** How old an answer may be for the next one who asks: a scraper asks every few seconds. */
const keptMs = 1000

/**
 * A text that takes long to make and that anybody may ask for, as UTF-8: it is made at most once a second, and in between all get
 * the same bytes. Nobody may change them.
 */
export function sharedText(clock: Pick<Clock, 'monotonic'>, make: () => string): () => Uint8Array {
  let kept: { readonly bytes: Uint8Array; readonly untilMs: number } | undefined
  return () => {
    const nowMs = clock.monotonic()
    if (kept === undefined || nowMs >= kept.untilMs)
      kept = { bytes: Buffer.from(make()), untilMs: nowMs + keptMs }
    return kept.bytes
  }
}
