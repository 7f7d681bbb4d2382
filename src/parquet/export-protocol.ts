/** One export: what of the index goes out, and where to. */
export interface ExportOrder {
  /** Folder below the exports' own; made where it is missing. */
  readonly outputDir: string
  /** Inclusive, both. What a fork can still take away is left out. */
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

/** What an operator asks of the exporter. */
export type ExportRequest =
  /** Begin. Refused `malformed` where folder or heights are wrong. */
  | { readonly export: 'begin'; readonly order: ExportOrder }
  /** How the export with this id goes; without one, the last. */
  | { readonly export: 'state'; readonly jobId?: string }
  /** End the one that runs; nothing of it is left. */
  | { readonly export: 'cancel' }

export type ExportReply =
  | { readonly kind: 'export-begun'; readonly state: ExportState }
  /** One runs already. */
  | { readonly kind: 'export-runs'; readonly state: ExportState }
  | { readonly kind: 'export-state'; readonly state: ExportState | undefined }
