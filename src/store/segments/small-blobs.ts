import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { BlobParts, FilePart } from '../blobs.js'
import { payloadOffset, type SegmentPlace, segmentName } from './place.js'
import type { SegmentReader } from './segment-reader.js'
import type { SegmentStore } from './segment-store.js'

/** Payloads in segments as parts of files: for those who read files, or have them read. Any thread. */
export class SegmentParts implements BlobParts {
  /** `finder`: the writer itself on its thread, elsewhere the reader. */
  constructor(
    private readonly folder: string,
    private readonly finder: { find(digest: Uint8Array): SegmentPlace | undefined },
    private readonly reader: SegmentReader,
  ) {}

  /** Where the payload lies; undefined where it is not held. The file may go at any time: then it is missing. */
  part(digest: Uint8Array): Required<FilePart> | undefined {
    const place = this.finder.find(digest)
    return place === undefined ? undefined : this.partOf(place)
  }

  /**
   * True: it is held here, and its bytes are not those of its digest, or not to be had. Hashed once in the life of the
   * process, by this thread where nobody did it before. Throws where the disk refuses.
   */
  isFalse(digest: Uint8Array): boolean {
    const place = this.finder.find(digest)
    if (place === undefined) return false
    const content = this.reader.open(place, digest)
    const isSound = content?.verifyNow() === true
    content?.close()
    return !isSound
  }

  protected partOf(place: SegmentPlace): Required<FilePart> {
    const path = `${this.folder}/${segmentName(place.segment)}`
    return { path, offset: payloadOffset(place), sizeBytes: place.sizeBytes }
  }
}

/** A payload that was put into a segment. */
export interface PlacedPart extends Required<FilePart> {
  readonly place: SegmentPlace
}

/** The same on the thread that writes them. */
export class SmallBlobs extends SegmentParts {
  constructor(
    folder: string,
    private readonly store: SegmentStore,
    reader: SegmentReader,
    readonly payloadMaxBytes: number,
  ) {
    super(folder, store, reader)
  }

  /** Keeps a payload whose SHA-256 is `digest`. A refusal: the disk is full or fails. */
  put(digest: Uint8Array, parts: readonly Uint8Array[]): PlacedPart | Refusal {
    const place = this.store.put(digest, parts)
    return isRefusal(place) ? place : { ...this.partOf(place), place }
  }

  /** What was put so far is found by its digest on every thread. */
  commit(): void {
    this.store.commit()
  }

  remove(digest: Uint8Array): void {
    this.store.remove(digest)
  }
}
