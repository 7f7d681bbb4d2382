import { usualStart } from '../format/usual-cut.js'
import type { Ruleset } from '../proof/path.js'
import {
  type ChunkName,
  decodeChunkWords,
  encodeChunkWords,
  nameOfChunk,
} from '../store/segments/chunk-words.js'
import type { SegmentPlace } from '../store/segments/place.js'
import type { SegmentContent, SegmentReader } from '../store/segments/segment-reader.js'
import type { SegmentStore } from '../store/segments/segment-store.js'
import type { ProvenChunk } from './chunk-cache.js'

/** A byte of data, and the rules that its chunk must be proven by. */
export interface ChunkByte {
  readonly dataRoot: Uint8Array
  readonly dataSize: number
  /** From 0. */
  readonly offset: number
  readonly ruleset: Ruleset
}

/**
 * Proven chunks in segments, beside small content and evicted with it. A chunk is found by the place where it begins in the
 * usual cut of data: chunks of another cut are not kept here. What this run has not written is proven once more before a byte of
 * it is given, by whoever asks first.
 */
export class SegmentChunks {
  /** `finder`: the writer itself on its thread, elsewhere the reader. */
  constructor(
    private readonly finder: { find(name: Uint8Array): SegmentPlace | undefined },
    private readonly reader: SegmentReader,
  ) {}

  /** Whether the index has it. */
  has(byte: ChunkByte): boolean {
    return this.finder.find(nameOfChunk(chunkOf(byte))) !== undefined
  }

  /**
   * A copy of `sizeBytes` bytes from `byte` on. Undefined: they are not here, not all in one chunk, not proven since the start,
   * or not in memory: `take` says. Never waits.
   */
  near(byte: ChunkByte, sizeBytes: number): Uint8Array | undefined {
    const chunk = chunkOf(byte)
    const content = this.#open(chunk)
    if (content === undefined) return undefined
    try {
      const from = byte.offset - chunk.start
      if (sizeBytes === 0 || from + sizeBytes > content.sizeBytes || !content.sound) return undefined
      const bytes = Buffer.allocUnsafe(sizeBytes)
      if (!content.copyNow(from, bytes)) return undefined
      content.spare()
      return bytes
    } finally {
      content.close()
    }
  }

  /** A copy of the chunk with this byte; undefined where it is not here, or is damaged. Throws where the disk refuses. */
  async take(byte: ChunkByte): Promise<ProvenChunk | undefined> {
    const name = chunkOf(byte)
    const content = this.#open(name)
    if (content === undefined) return undefined
    try {
      const { start } = name
      const end = start + content.sizeBytes
      if (byte.offset >= end || !(await content.verify())) return undefined
      if (!(await content.ready(0, content.sizeBytes))) return undefined
      const [chunk, meta] = [content.copy(), content.copyRoom()]
      const words = meta && decodeChunkWords(meta)
      if (chunk === undefined || words === undefined) return undefined
      content.spare()
      return { ...words, chunk, end }
    } finally {
      content.close()
    }
  }

  #open(chunk: ChunkName): SegmentContent | undefined {
    const name = nameOfChunk(chunk)
    const place = this.finder.find(name)
    return place === undefined ? undefined : this.reader.open(place, name)
  }
}

/** The same on the thread that writes them. */
export class WrittenChunks extends SegmentChunks {
  constructor(
    private readonly store: SegmentStore,
    reader: SegmentReader,
  ) {
    super(store, reader)
  }

  /** Keeps a chunk; one that is here already is not written again. A disk that is full or fails costs the copy only. */
  put(proven: ProvenChunk): void {
    const { chunk, start, dataSize } = proven
    if (chunk.length === 0 || usualStart(start, dataSize) !== start) return
    this.store.putChunk(nameOfChunk(proven), encodeChunkWords(proven), chunk)
  }
}

function chunkOf({ dataRoot, dataSize, offset, ruleset }: ChunkByte): ChunkName {
  return { dataRoot, dataSize, start: usualStart(offset, dataSize), ruleset }
}
