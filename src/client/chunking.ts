import { ClientError } from './errors.js'

export const chunkBytesMin = 5 * 1024 * 1024
export const chunkBytesMax = 500 * 1024 * 1024

export interface ChunkingOptions {
  /** 5 MiB to 500 MiB; 5 MiB by default. */
  readonly chunkByteCount?: number
  /** Requests at once at most, 1 to 256; 5 by default. How many there are adapts to how the service answers. */
  readonly maxChunkConcurrency?: number
  /** `auto`: from three parts on. */
  readonly chunkingMode?: 'auto' | 'force' | 'disabled'
  /** How long the service may take to put the parts together; one minute for each GiB by default, at least one. */
  readonly maxFinalizeMs?: number
}

/** Whether an item of this size goes in parts. */
export function goesInParts(sizeBytes: number, { chunkByteCount, chunkingMode }: ChunkingOptions): boolean {
  if (chunkingMode === 'force') return true
  if (chunkingMode === 'disabled') return false
  return sizeBytes > 2 * (chunkByteCount ?? chunkBytesMin)
}

/** Throws where an option is out of its bounds: a concurrency of 0 would never send, a time that is no number would never end. */
export function checkChunking(options: ChunkingOptions): void {
  const {
    chunkByteCount = chunkBytesMin,
    maxChunkConcurrency = 5,
    chunkingMode = 'auto',
    maxFinalizeMs = 0,
  } = options
  const isWhole = (value: number, min: number, max: number): boolean =>
    Number.isInteger(value) && value >= min && value <= max
  if (!isWhole(chunkByteCount, chunkBytesMin, chunkBytesMax))
    throw invalid('chunkByteCount', chunkByteCount, 'give 5 MiB to 500 MiB, in bytes')
  if (!isWhole(maxChunkConcurrency, 1, 256))
    throw invalid('maxChunkConcurrency', maxChunkConcurrency, 'give a whole number from 1 to 256')
  if (!['auto', 'force', 'disabled'].includes(chunkingMode))
    throw invalid('chunkingMode', chunkingMode, 'give auto, force or disabled')
  if (!(maxFinalizeMs >= 0)) throw invalid('maxFinalizeMs', maxFinalizeMs, 'give milliseconds, 0 or more')
}

function invalid(name: string, value: unknown, advice: string): ClientError {
  return new ClientError('invalid-input', `${name} is ${String(value)}`, advice)
}
