export const chunkBytesMin = 5 * 1024 * 1024
export const chunkBytesMax = 500 * 1024 * 1024

export interface ChunkingOptions {
  /** 5 MiB to 500 MiB; 5 MiB unless said. */
  readonly chunkByteCount?: number
  /** Requests at once at most; 5 unless said. How many there are adapts to how the service answers. */
  readonly maxChunkConcurrency?: number
  /** `auto`: from three parts on. */
  readonly chunkingMode?: 'auto' | 'force' | 'disabled'
  /** How long the service may take to put the parts together; one minute for each GiB unless said, at least one. */
  readonly maxFinalizeMs?: number
}

/** Whether an item of this size goes in parts. */
export function goesInParts(sizeBytes: number, { chunkByteCount, chunkingMode }: ChunkingOptions): boolean {
  if (chunkingMode === 'force') return true
  if (chunkingMode === 'disabled') return false
  return sizeBytes > 2 * (chunkByteCount ?? chunkBytesMin)
}
