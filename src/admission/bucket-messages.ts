import type { BucketKind } from './buckets.js'

/** Four words of a bucket's key. */
export type KeyWords = readonly [number, number, number, number]

/** Messages of edge threads to the keeper of buckets. */
export interface KeeperRequest {
  /** Answered when it is on disk. */
  readonly kind: 'credit'
  readonly bucket: BucketKind
  readonly key: KeyWords
  readonly payment: string
  readonly tokens: number
}

export type KeeperReply = { readonly kind: 'credited' } | { readonly kind: 'known' }
