/** One export: which part of the index is written, and where to. */
export interface ExportOrder {
  /** Folder below the exports' own; made where it is missing. */
  readonly outputDir: string
  /** Inclusive, both. Blocks that a fork can still replace are left out. */
  readonly startHeight: number
  readonly endHeight: number
  readonly maxFileRows: number
  /** Heights that share a folder. */
  readonly heightPartitionSize: number
  readonly skipL1Transactions: boolean
  readonly skipL1Tags: boolean
}

/** An export under way, or one that is over. */
export interface ExportState extends ExportOrder {
  readonly jobId: string
  readonly status: 'running' | 'completed' | 'errored'
  /** The last height that is final, and so exported. */
  readonly lastHeight: number
  /** Heights up to this one are written. */
  readonly height?: number
  readonly rows: { readonly blocks: number; readonly transactions: number; readonly tags: number }
  readonly files: number
  readonly durationInSeconds: number
  /** ISO 8601, and the same in milliseconds since 1970. */
  readonly endTime?: string
  readonly endTimestamp?: number
  readonly error?: string
}

/** Orders of an operator to the exporter. */
export type ExportRequest =
  /** Begin. Refused `malformed` where folder or heights are wrong. */
  | { readonly export: 'begin'; readonly order: ExportOrder }
  /** The state of the export with this id; without an id, of the last one. */
  | { readonly export: 'state'; readonly jobId?: string }
  /** Cancel the one that runs; its files are removed. */
  | { readonly export: 'cancel' }

export type ExportReply =
  | { readonly kind: 'export-begun'; readonly state: ExportState }
  /** One runs already. */
  | { readonly kind: 'export-runs'; readonly state: ExportState }
  | { readonly kind: 'export-state'; readonly state: ExportState | undefined }
