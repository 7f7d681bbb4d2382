import { OutOfEffort } from './effort.js'
import type { Row } from './row.js'
import { isBefore } from './row-scan.js'
import { beside } from './scan.js'
import { boundsOf, type Selection } from './selection.js'

/**
 * Where a scan begins and which key (inclusive) it does not pass; no start: nothing can be behind `after`.
 */
export function scanSpan(
  wanted: Selection,
  backwards: boolean,
  after: Uint8Array | undefined,
): { start: Buffer | undefined; end: Buffer } {
  const { first, last } = boundsOf(wanted)
  const [near, end] = backwards ? [last, first] : [first, last]
  const next = after === undefined ? near : beside(after, backwards)
  const start = next !== undefined && isBefore(next, near, backwards) ? near : next
  return { start: start === undefined || passes(start, end, backwards) ? undefined : start, end }
}

/** What is found within the effort; undefined where that was used up. */
export function within<Found>(find: () => Found): Found | undefined {
  try {
    return find()
  } catch (error) {
    if (error instanceof OutOfEffort) return undefined
    throw error
  }
}

/** Whether a row lies behind the end of a span, in its direction. */
export function passes(row: Uint8Array, end: Uint8Array, backwards: boolean): boolean {
  return isBefore(end, row, backwards)
}

/** The page that ends before the row or key at which the effort was spent. */
export function cutBefore(
  key: Uint8Array,
  entries: readonly Row[],
  backwards: boolean,
): {
  readonly entries: readonly Row[]
  readonly more: true
  readonly place: Uint8Array
} {
  const place = beside(key, !backwards)
  if (place === undefined) throw new Error('a scan was cut before it began')
  return { entries, more: true, place }
}
