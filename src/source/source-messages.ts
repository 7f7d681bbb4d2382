import type { Attributes } from '../catalog/attributes.js'
import type { Id } from '../format/id.js'
import type { Refusal } from '../format/refusal.js'
import type { SegmentPlace } from '../store/segments/place.js'

/** Hints of a client (or a peer gateway) about the place of an id. A hint changes only where the search begins. */
export interface Hints {
  readonly rootId?: Id
  /** Root first. */
  readonly path?: readonly Id[]
  /** Where the complete item begins in the root's data. */
  readonly itemOffset?: number
  /** Only with `itemOffset`. */
  readonly itemSize?: number
}

/** The way of a request to here, from its header lines: loops between gateways are noticed by it. */
export interface Trail {
  /** Gateways passed so far, as the last one counts. */
  readonly hops: number
  /** Lower-case host names already visited. */
  readonly via: readonly string[]
  /** False: no other gateway gets a request on behalf of this one; this machine and the chain answer. */
  readonly forward: boolean
}

/** The trail of a request for content, and the gateway at which the request began: requests to other gateways carry it on. */
export interface Provenance extends Trail {
  readonly origin?: string
  readonly originRelease?: string
}

/** A window of the payload in bytes; `end` is its last byte, as in a Range header. */
export interface Window {
  readonly start: number
  readonly end: number
  /** Requested before the size was known: behind the payload's end, `end` means its last byte. */
  readonly mayEndEarlier?: true
}

/**
 * A request for content that is not in the store, or for a window of it: from an edge thread, in a message (`OpenMessage`), to
 * the transfer that it begins or joins. The transfer requests the same from each source, with what it knows (`Wanted`).
 */
export interface ContentRequest {
  readonly id: Id
  readonly hints: Hints
  readonly provenance: Provenance
  /** Absent: the whole payload. */
  readonly window?: Window
  /** Requested by a name: the first to be proven. */
  readonly named?: boolean
  /** The catalog's generation of the id at which it was read and had nothing: the catalog is not read again. */
  readonly absentAt?: number
  /**
   * Address of the client that sends it: it has a share of the transfers under way, and turns of costly searches. Absent: this
   * program itself.
   */
  readonly client?: string
}

/** Edge thread to the fetcher (one thread; it owns every upstream fetch and the growing files). */
export type SourceRequest =
  /**
   * Bring `id`. Concurrent opens of one id share one fetch. A window may be served by a fetch of its own. `readsSegments`: the
   * sender reads segments, so that what lies in one as a whole may be answered with `placed`.
   */
  | (ContentRequest & { readonly kind: 'open'; readonly readsSegments?: boolean })
  /** The reader of a transfer needs nothing more of it; every `opened` reply is closed exactly once. */
  | { readonly kind: 'close'; readonly reader: number }
  /** Removes a blob from disk; it is fetched anew when somebody asks. */
  | { readonly kind: 'evict'; readonly digest: Uint8Array }
  /** Whether this content stays on disk whatever room is needed. `bundle`: digest of the bundle that holds its bytes. */
  | {
      readonly kind: 'pin'
      readonly digest: Uint8Array
      readonly isPinned: boolean
      readonly bundle?: Uint8Array
    }
  /** Is the blob on disk what its name says? Remembered per (digest, inode, mtime). A false one is dropped and distrusted. */
  | { readonly kind: 'check'; readonly id: Id; readonly digest: Uint8Array }
  /** Is the item what lies at its place in a bundle of the store? Its digest stands in the catalog before the answer. */
  | { readonly kind: 'judge-item'; readonly id: Id }
  /** Brings the data of a transaction into the store, proven against the chain, for nobody who waits for bytes. */
  | { readonly kind: 'fetch-proven'; readonly id: Id }
  /** The SHA-256 of a payload; it is brought whole where nobody here knows it. */
  | { readonly kind: 'digest'; readonly id: Id }
  /** Moves all content between the disk and the object store, or says how far that is. */
  | TierRequest
  /** The packed form of a manifest, made where there is none. `again`: what this path led to was found damaged. */
  | { readonly kind: 'manifest'; readonly from: ManifestFrom; readonly again: boolean }

/** The message that begins or joins a transfer. */
export type OpenMessage = Extract<SourceRequest, { kind: 'open' }>

/** What an operator requests of the object store below the disk. */
export interface TierRequest {
  readonly kind: 'object-store'
  readonly order: 'state' | 'push' | 'pull' | 'stop'
}

/** The text of a manifest: a blob on disk by its digest, or what this reader has open (the whole of it, all there). */
export type ManifestFrom = { readonly digest: Uint8Array } | { readonly reader: number }

export type SourceReply =
  | {
      readonly kind: 'opened'
      /** Names this reader in `close` and in progress events. */
      readonly reader: number
      /** What is known now; `digest` present only where the whole body is already hashed. */
      readonly attributes: Attributes
      /** File that holds, or will hold, the bytes; it only grows, and keeps its inode when renamed. Open it at once. */
      readonly path: string
      /** Where in the file the first of these bytes lies (0 but for what lies in a segment). */
      readonly offset: number
      /** Payload offset of that byte (0 but for windows). */
      readonly base: number
      /** Bytes that will be there when whole. */
      readonly sizeBytes: number
      /** Slot in the progress table: bytes readable so far, or a final state. */
      readonly slot: number
      /** Its bytes are memory that is counted until the reader is closed. */
      readonly isInMemory?: true
      /** Which source brings it, e.g. `trusted-gateways`; for logs and metrics. */
      readonly source: string
      readonly trusted: boolean
      /** Gateways that the answer passed, as the last one counts. */
      readonly hops?: number
    }
  /** All of it was judged and lies in a segment. It is read there: there is no reader to be closed. */
  | {
      readonly kind: 'placed'
      readonly attributes: Attributes
      readonly digest: Uint8Array
      readonly place: SegmentPlace
      readonly source: string
      readonly trusted: boolean
      readonly hops?: number
    }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | { readonly kind: 'checked'; readonly sound: boolean }
  | { readonly kind: 'evicted'; readonly dropped: boolean }
  /** `isDone` false: there are too many, or none can be kept here. */
  | { readonly kind: 'pinned'; readonly isDone: boolean; readonly count: number }
  /** It is in the store, or could not be had. */
  | { readonly kind: 'fetched' }
  /** How the object store is, as JSON (`TierState`); absent: there is none. */
  | { readonly kind: 'object-store'; readonly state?: object }
  | { readonly kind: 'digest'; readonly digest: Uint8Array }
  /** `digest`: of the manifest's text; `path`: the file that `PackedFile` opens. */
  | { readonly kind: 'packed'; readonly digest: Uint8Array; readonly path: string }

/** Notice from the fetcher: this slot changed (more bytes, whole, or broken). At most one per turn and slot. */
export interface SourceProgress {
  readonly kind: 'progress'
  readonly slots: readonly number[]
}
