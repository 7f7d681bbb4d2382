import type { BucketKind } from './buckets.js'

/** Four words of a bucket's key. */
export type KeyWords = readonly [number, number, number, number]

/** What edge threads ask of the keeper of buckets. */
export type KeeperRequest =
  | {
      /** Answered when it is on disk. */
      readonly kind: 'credit'
      readonly bucket: BucketKind
      readonly key: KeyWords
      readonly payment: string
      readonly tokens: number
    }
  /** Told: a busy resource's name, which buckets do not hold. */
  | { readonly kind: 'named'; readonly key: KeyWords; readonly name: string }
  | { readonly kind: 'busiest'; readonly limit: number }

export type KeeperReply =
  | { readonly kind: 'credited' }
  | { readonly kind: 'known' }
  | {
      readonly kind: 'busiest'
      readonly addresses: readonly Emptiest[]
      readonly resources: readonly Emptiest[]
    }

export interface Emptiest {
  readonly name: string
  readonly tokens: number
  readonly paidTokens: number
}
