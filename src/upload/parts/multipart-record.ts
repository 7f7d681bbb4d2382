import type { Id } from '../../format/id.js'
import type { PaidFacts } from '../charging/sales.js'
import type { UploadAnswer } from '../requests/upload-answers.js'
import type { Uploader } from '../requests/uploader.js'
import type { DueKind, DuePlace } from './due-records.js'

/** How far the end of an upload has come. */
export type Stage = 'ASSEMBLING' | 'VALIDATING' | 'FINALIZING'

/** What only uploads have whose bytes come one request behind the other (IETF draft of resumable uploads). */
export interface AppendedTerms {
  /** Bytes of the whole item, where the client announced them. */
  readonly lengthBytes?: number
  /** SHA-256 (base64) of the whole item, where the client stated it. */
  readonly digest?: string
}

/**
 * An upload in parts:
 *
 *     open --> asked --> finalized
 *       |        |
 *       +--------+-----> underfunded --> finalized
 *       |        |
 *       +--------+-----> invalid, approval_failed, revoke_failed
 *
 * `asked`: a client ordered its end and does not wait for it. A restart continues with it.
 */
export interface MultipartRecord {
  readonly id: string
  /** Parts begin at multiples of it; 0: parts of any size lie one behind the other. */
  readonly chunkBytes: number
  readonly createdMs: number
  readonly changedMs: number
  /** Whose share of the disk it takes: an address range. */
  readonly client?: string
  /** Absent: parts come in any order. */
  readonly appended?: AppendedTerms
  /** It is paid for at its beginning. */
  readonly paid?: PaidUpload
  readonly state:
    | 'open'
    | 'asked'
    | 'finalized'
    | 'underfunded'
    | 'invalid'
    | 'approval_failed'
    | 'revoke_failed'
  /** Who ordered its end. */
  readonly uploader?: Uploader
  /** Another machine of the cluster has accepted its item, and gives the receipt. */
  readonly heldItem?: Id
  /**
   * The item that some machine of the cluster may have accepted for what was paid, from before it does. Such an upload is
   * `asked`, so it is finished, is not refunded when its time is over, and gives its place up for nobody. A week after its
   * beginning it is refunded all the same.
   */
  readonly begunItem?: Id
  /** What became of it, where `finalized`. */
  readonly itemId?: Id
  /** Why not, where it is over otherwise, or `underfunded`. */
  readonly answer?: UploadAnswer
  /** When it is looked at next, if not when it expires. */
  readonly dueMs?: number
  /** Where `finalized`, and other machines answer for it, too: the one receipt that was given for it. */
  readonly receipt?: unknown
}

/** An upload that is paid for in USDC at its beginning. */
export interface PaidUpload {
  /** Name of the payment. */
  readonly payment: string
  /** Bytes of the whole item, as they were announced. */
  readonly bytes: number
  /** Digest of its signature (`signatureDigest`). Absent in records of older releases. */
  readonly signed?: string
  /** Absent: the money may not have moved. */
  readonly facts?: PaidFacts
  /** When that was known first. */
  readonly paidMs?: number
  /** What is to become of the money: the item had so many bytes, or nothing was used of it. */
  readonly owes?: 'refund' | { readonly spent: number }
  /** That has happened. */
  readonly endedMs?: number
}

/** Whether the money may not have moved. */
export function isUndecided(paid: PaidUpload | undefined): boolean {
  return paid !== undefined && paid.facts === undefined
}

/** Whether it gives its place up for nobody: money may still move for it, or some machine may have accepted its item. */
export function mayNotBeLost({ paid, begunItem }: Pick<MultipartRecord, 'paid' | 'begunItem'>): boolean {
  return isUndecided(paid) || begunItem !== undefined
}

/** From its first request on; then it is gone, whole or not. */
export const uploadLivesMs = 24 * 3600_000

/** No more parts are taken for it. */
export function isOver({ state }: MultipartRecord): boolean {
  return state !== 'open' && state !== 'asked' && state !== 'underfunded'
}

/** Where it stands in the order. */
export function duePlaceOf(record: MultipartRecord): DuePlace {
  const { id, createdMs, dueMs = createdMs + uploadLivesMs } = record
  return { kind: dueKindOf(record), dueMs, id }
}

/** What is to become of it. */
export function dueKindOf(record: MultipartRecord): DueKind {
  const { paid, state } = record
  if (!isOver(record)) return 'open'
  if (paid !== undefined && paid.endedMs === undefined) return 'owed'
  return state === 'finalized' ? 'finalized' : 'failed'
}
