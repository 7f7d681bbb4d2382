import type { Attributes } from '../catalog/attributes.js'
import type { SegmentPlace } from '../store/segments/place.js'

/** Size, type and place of a transfer, as its readers get them. */
export interface Announcement {
  readonly attributes: Attributes
  readonly path: string
  /** The file is a draft in memory. */
  readonly isInMemory?: true
  /** Where in the file the payload's first byte lies, or that of the window. */
  readonly offset: number
  /** Where all of it lies, judged, in a segment. */
  readonly place?: SegmentPlace
  readonly base: number
  readonly sizeBytes: number
  readonly source: string
  readonly trusted: boolean
  readonly hops?: number
}
