import type { Log } from '../../actor/log.js'
import type { Address } from '../../actor/mailbox-address.js'
import type { CatalogReply, CatalogRequest } from '../../catalog/catalog-messages.js'
import type { LmdbCatalog } from '../../catalog/reader.js'
import type { Id } from '../../format/id.js'
import type { BlobStore } from '../../store/blobs.js'
import type { SmallBlobs } from '../../store/segments/small-blobs.js'
import type { FetchMeters } from '../fetch-meters.js'
import type { BlobCache } from '../keeping/blob-cache.js'
import type { Source } from '../source.js'
import type { AvoidedOrigins } from './avoided-origins.js'
import type { Suspects } from './suspects.js'

export interface FetchOptions {
  /** Payloads up to this size are announced to readers only when they are whole, with a digest. */
  readonly digestBufferMaxBytes: number
  /** When all readers left: what is still missing is fetched all the same if it is not more than this... */
  readonly finishBytes: number
  /** ...or if this share (0 to 1) is there already. */
  readonly finishShare: number
}

/** What must not be served, whatever id it is requested by. */
export interface Forbidden {
  /** False: nothing is. */
  readonly mayBlockContent: boolean
  /** False: no content of this size is, by its digest; absent: of any size. */
  mayBlockSize(sizeBytes?: number): boolean
  /** Content of exactly this size is. */
  isBlockedSize(sizeBytes: number): boolean
  /** The id, or something that it lies in. */
  blocksId(id: Id, around?: readonly Id[]): boolean
  /** By the SHA-256 of the whole payload. */
  blocksDigest(digest: Uint8Array): boolean
}

export interface TransferParts {
  /** Where to get what is not in the store. */
  readonly source: Source
  readonly store: BlobStore
  /** Absent: every payload has a file of its own. */
  readonly small?: SmallBlobs
  readonly catalog: LmdbCatalog
  readonly keeper: Address<CatalogRequest, CatalogReply>
  readonly blobCache: BlobCache
  readonly avoided: AvoidedOrigins
  readonly suspects: Suspects
  /** Absent: nothing is forbidden. */
  readonly forbidden?: Forbidden
  readonly meters: FetchMeters
  readonly log: Log
  readonly options: FetchOptions
}
