import { bundleCountSize, bundleEntrySize } from './bundle-table.js'

/** A place between two items of a bundle, from which it can be read without what lies before it. */
export interface ReadingPlace {
  /** Items that the bundle's header states. */
  readonly count: number
  /** Number of the next item, from 0. */
  readonly index: number
  /** Where that item begins in the bundle. */
  readonly offset: number
}

/** Bytes of a bundle. */
export interface BundleSpan {
  readonly start: number
  /** Exclusive. */
  readonly end: number
}

/** Number of the item before which a reading from this place ends, with at most so many entries. */
export function partEnd({ count, index }: ReadingPlace, entriesMax: number): number {
  return Math.min(count, index + entriesMax)
}

/** What is to be read of a bundle from this place: the entries of the next items, and all bytes from the first of them on. */
export function spansFrom(place: ReadingPlace, entriesMax: number, sizeBytes: number): BundleSpan[] {
  const entryAt = (index: number): number => bundleCountSize + index * bundleEntrySize
  return [
    { start: entryAt(place.index), end: entryAt(partEnd(place, entriesMax)) },
    { start: place.offset, end: sizeBytes },
  ]
}
