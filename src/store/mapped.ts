import type { Clock } from '../actor/clock.js'
import type { Content } from './content.js'

export interface MappedOptions {
  /** Address space that this thread's idle mappings may hold. */
  readonly mappedMaxBytes: number
  /** Files that this thread keeps open. */
  readonly filesMax: number
  /** For so long a file is believed to be what it was; then its inode, size and time are looked at again. */
  readonly believeMs: number
}

/** A whole file as content. */
export interface MappedContent extends Content {
  readonly inode: bigint
  readonly modifiedNs: bigint
}

/**
 * Files of this thread that are mapped into memory, kept for the next reader. Files must never change in place or shrink
 * (blobs do not); they may be replaced or unlinked at any time.
 */
export class MappedFiles {
  constructor(_options: MappedOptions, _clock: Clock) {
    throw new Error('not built yet')
  }

  /** The file at `path`, or undefined where there is none. Throws on any other failure of the disk. */
  open(_path: string): MappedContent | undefined {
    throw new Error('not built yet')
  }

  /** Lets go of every mapping; contents still open stay readable until they are closed. */
  close(): void {
    throw new Error('not built yet')
  }
}
