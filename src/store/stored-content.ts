import type { FileContent } from './mapped.js'
import type { SegmentContent } from './segments/segment-reader.js'

/** A payload that lies in the store: in a file of its own, or in a segment. */
export type StoredContent = FileContent | SegmentContent
