import type { Meter, Meters } from '../actor/meter.js'
import type { Reason } from '../format/refusal.js'

/** What the sources did, for operators. */
export interface FetchMeters {
  /** A source brought a whole payload or window of so many bytes. */
  brought(source: string, bytes: number): void
  /** A source broke off, or its bytes were not what they had to be. */
  broke(source: string): void
  /** The rest of a body that broke off was requested. */
  resumed(): void
  /** A payload of which a window was read is brought whole. */
  filled(): void
  /** No source brought it. */
  refused(reason: Reason): void
}

/** The same in the program's table. */
export function fetchMeters(meters: Meters): FetchMeters {
  const cells = new Map<string, Meter>()
  const of = (source: string, outcome: string): Meter => {
    const key = `${source} ${outcome}`
    const known = cells.get(key) ?? meters.of('fetches_total', { source, outcome })
    cells.set(key, known)
    return known
  }
  const resumes = meters.of('fetches_resumed_total')
  const fills = meters.of('fetches_filled_total')
  const bytesTotal = meters.of('fetched_bytes_total')
  return {
    brought(source, bytes) {
      of(source, 'whole').add(1)
      bytesTotal.add(bytes)
    },
    resumed: () => resumes.add(1),
    filled: () => fills.add(1),
    broke: (source) => of(source, 'broken').add(1),
    refused: (reason) => of('none', reason === 'unknown' ? 'unknown' : 'failed').add(1),
  }
}
