import type { Refusal } from '../format/refusal.js'

/**
 * Bands: parts of an index, each a folder of files that never change, given away by a signed document. Below `DATA_PATH/bands`:
 *
 *     own/<index>/<band id>/<file>         built here; offered to others
 *     installed/<index>/<band id>/<file>   fetched from others; looked into, and seeded on by torrent
 *     subscribed/                          what was last heard of publishers; .torrent files of what was fetched
 *     fetching/<index>/<band id>/          on its way
 *     tmp/<process>.<random>/              drafts; those of processes that are gone are removed at start
 *     blobs/<sha256 hex>                   hard links to what is offered now, for the byte routes
 *     measured/<index>/<band id>.json      what was measured of a band (digests, torrent), so that it is read once
 *     torrents/<infohash v1>.torrent       .torrent files of what is offered
 *     offer.json                           the document as it is served, and which file stands behind each digest
 *
 * Only the thread of `workers/bands.ts` and the command line write here (band-store.ts); edge threads read.
 */
export type BandGroup = 'own' | 'installed'

/** Kinds of bands and the usual names of their indexes. */
export const rootTxKind = { kind: 'cdb64-root-tx', index: 'root-tx-index' } as const
export const l1Kind = { kind: 'parquet-l1', index: 'parquet-l1' } as const

/** What stands in front of the document in the message that is signed, with a line feed between. */
export const ownDomain = 'gateway-index-publication/v1'
/** The same of the gateways in use. */
export const peerDomain = 'ar-io-index-publication/v1'

/** Bytes of a publication document at most, looked at before anything is parsed. */
export const publicationMaxBytes = 4 * 1024 * 1024

/** One file of a band. */
export interface BandFile {
  readonly name: string
  readonly size: number
  /** 64 lower-case hex digits. */
  readonly sha256: string
}

export interface BandTorrent {
  /** 40 hex digits: SHA-1 of the info dictionary. */
  readonly infohashV1: string
  /** 64 hex digits: SHA-256 of the same bytes. */
  readonly infohashV2?: string | undefined
  readonly magnet: string
  /** Path from the gateway's root. */
  readonly torrentUrl: string
}

/** From, and to (inclusive); null: follows the tip. */
export type HeightRange = readonly [number, number | null]

/** A band as the document lists it. */
export interface Band {
  readonly id: string
  readonly files: readonly BandFile[]
  readonly heightRange?: HeightRange | undefined
  readonly records?: number | undefined
  readonly http?: { readonly baseUrl?: string | undefined } | undefined
  readonly torrent?: BandTorrent | undefined
  readonly arweave?: { readonly manifestTxId?: string | undefined } | undefined
  /** Members of the kind's own: `supersedes` (an id or a list) is common to all. */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined
}

export interface PublishedIndex {
  readonly name: string
  readonly kind: string
  readonly filter?: unknown
  readonly bands: readonly Band[]
}

/** The signed document of `GET /gateway/indexes`. Other members are ignored, but covered by the signature. */
export interface PublicationDocument {
  readonly version: 1
  /** The publishing gateway's wallet: base58 of 32 bytes. */
  readonly publisher: string
  /** Grows with each document of one publisher. */
  readonly sequence: number
  /** SHA-256 (hex) of the document before this one as it was served. */
  readonly previousManifestSha256: string | null
  /** ISO 8601. */
  readonly issuedAt: string
  readonly expiresAt: string
  readonly indexes: readonly PublishedIndex[]
  readonly signature: { readonly alg: 'ed25519'; readonly keyId: string; readonly sig: string }
}

/** The facts of a band in a folder, read without its big files. */
export interface BandAccount {
  /** Names of all its files, in the order of the document (bytewise). */
  readonly files: readonly string[]
  readonly heightRange?: HeightRange
  readonly records?: number
  readonly metadata?: Readonly<Record<string, unknown>>
  /** Ids of bands of the same index that this one replaces. */
  readonly supersedes: readonly string[]
}

/** One kind of bands. The publisher calls it for every folder of its index; the subscriber before it installs one. */
export interface BandKind {
  readonly kind: string
  /** Name of the index that bands built here belong to. */
  readonly index: string
  /**
   * Fast: reads only the band's own manifest. A refusal where it is no band of this kind, or the set of files is
   * another.
   */
  describe(folder: string): Promise<BandAccount | Refusal>
  /** Verifies all files; a refusal names what is wrong. Bands of others are not used before this succeeded. */
  check(folder: string): Promise<Refusal | undefined>
}

/** What is measured of a band's bytes, once: the files in the order given, and the torrent where one is made. */
export interface Measured {
  readonly files: readonly BandFile[]
  readonly torrent?: BandTorrent
}

/**
 * Reads the files `names` of a band's folder and measures them. The plain one (measure.ts) takes digests; the torrent one
 * takes its hashes in the same pass and leaves the .torrent file in its place. Rejects where the disk refuses.
 */
export type Measure = (folder: string, names: readonly string[]) => Promise<Measured>

/** A band in place. */
export interface StoredBand {
  readonly group: BandGroup
  readonly index: string
  readonly id: string
  readonly folder: string
}

/** A band that is in the document now, and where its files are. */
export interface OfferedBand {
  readonly index: string
  readonly kind: string
  readonly folder: string
  readonly band: Band
}
