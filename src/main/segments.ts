import type { Config } from '../../config/read.js'
import { marksBytes, type SharedSegments } from '../store/segments/segment-marks.js'
import { folders } from '../threads/folders.js'
import type { DiskShares } from '../threads/resources.js'

/** So many at least, or room is made by too much at once. */
const segmentsMin = 16

/** Smaller ones are not worth it: each payload has a file of its own then. */
const segmentMinBytes = 4 * 1024 * 1024

/** The part of what may be kept that may lie in segments. */
const segmentsShare = 0.5

/** What threads share of the segments; undefined: there are none. `disk`: the shares of the disk that they lie on. */
export function sharedSegments(config: Config, disk: DiskShares): SharedSegments | undefined {
  const { cacheMaxBytes, segmentBytes: wanted } = config.retrieval
  const maxBytes = cacheMaxBytes * segmentsShare
  const most = Math.min(wanted, maxBytes / segmentsMin, disk.segmentMaxBytes)
  const segmentBytes = Math.floor(most / 65_536) * 65_536
  if (segmentBytes < segmentMinBytes) return undefined
  // What a stop leaves is shorter than a whole one: so there may be more of them.
  const shape = { cells: Math.min(65_536, Math.ceil(maxBytes / segmentBytes) * 2 + 64), segmentBytes }
  return {
    folder: folders(config).segments,
    maxBytes: Math.floor(maxBytes),
    freeMinBytes: disk.freeMinBytes,
    shape,
    memory: new SharedArrayBuffer(marksBytes(shape)),
  }
}
