import type { Id } from '../format/id.js'
import { readJsonRow } from '../store/json-row.js'
import type { Environment, Table } from '../store/lmdb.js'
import type { UploadAnswer } from './answers.js'
import type { PaidFacts } from './sales.js'
import type { Uploader } from './uploader.js'

/** What only uploads have whose bytes come one request behind the other (IETF draft of resumable uploads). */
export interface AppendedTerms {
  /** Bytes of the whole item, where the client has told. */
  readonly lengthBytes?: number
  /** SHA-256 (base64) of the whole item, where the client has told. */
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
 * `asked`: its end was ordered by a client who does not wait for it; a restart goes on with it.
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
  /** What became of it, where `finalized`. */
  readonly itemId?: Id
  /** Why not, where it is over otherwise, or `underfunded`. */
  readonly answer?: UploadAnswer
}

/** An upload that is paid for in USDC at its beginning. */
export interface PaidUpload {
  /** Name of the payment. */
  readonly payment: string
  /** Of the whole item, as they were announced. */
  readonly bytes: number
  /** Absent: the money may not have moved. */
  readonly facts?: PaidFacts
  /** What is to become of the money: the item had so many bytes, or nothing was used of it. */
  readonly owes?: 'refund' | { readonly spent: number }
  /** That has happened. */
  readonly endedMs?: number
}

/** Uploads in parts, on disk. */
export class MultipartRecords {
  readonly #table: Table

  constructor(private readonly environment: Environment) {
    this.#table = environment.table('multipart')
  }

  find(id: string): MultipartRecord | undefined {
    const found = this.#table.get(Buffer.from(id))
    return found === undefined ? undefined : read(found)
  }

  all(): MultipartRecord[] {
    return [...this.#table.span({})].map(({ value }) => read(value))
  }

  put(record: MultipartRecord): void {
    this.environment.write(() => this.#table.put(Buffer.from(record.id), Buffer.from(JSON.stringify(record))))
  }

  remove(ids: readonly string[]): void {
    this.environment.write(() => {
      for (const id of ids) this.#table.remove(Buffer.from(id))
    })
  }

  /** Resolves when all that was put so far outlives a power cut. */
  flushed(): Promise<void> {
    return this.environment.flushed()
  }
}

function read(value: Uint8Array): MultipartRecord {
  return readJsonRow(value, 'uploads/data.mdb: a row about an upload in parts') as MultipartRecord
}
