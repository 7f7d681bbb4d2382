/** How a disk is shared out: by its size, so that a small one keeps content, too, and has room left for all else. */
export interface DiskShares {
  /** Infinity where the file system does not say it. */
  readonly sizeBytes: number
  /** Content that is cached leaves so much free, for databases and logs. */
  readonly freeMinBytes: number
  /** A segment takes its whole room at once. */
  readonly segmentMaxBytes: number
}

/** How the file descriptors of this process are divided. */
export interface Descriptors {
  /** Accepted sockets of all edge threads together. */
  readonly socketsMax: number
  /** Small files that each edge thread keeps open for the next reader, and large ones that it keeps mapped. */
  readonly filesMax: number
  /** Mapped files that stay open in the whole process, to be sent from: none where descriptors are few. */
  readonly sentFilesMax: number
  /** Packed manifests that each edge thread keeps open. */
  readonly manifestsMax: number
  /** Sockets to each other gateway. */
  readonly upstreamMax: number
  /** Calls to nodes under way, of each thread that asks them: chunks ahead of a reader, and `otherCalls`. */
  readonly callsMax: number
  /** Payloads that are fetched at once: each has a file and a socket. */
  readonly fetchesMax: number
}

/** Calls to nodes that are no chunks ahead of a reader. */
export const otherCalls = 14
