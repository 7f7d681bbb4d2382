import type { UploadAnswer } from '../requests/upload-answers.js'
import type { Uploader } from '../requests/uploader.js'
import type { DueKind } from './due-records.js'
import type { MultipartRecord, Stage } from './multipart-record.js'

/** An upload as all machines have it now. */
export interface SeenUpload {
  /** Undefined: there is none. */
  readonly record: MultipartRecord | undefined
  /** Size of each part by the place where it begins. It is kept up to date by who adds parts. */
  readonly chunks: Map<number, number>
  /** Another process puts it together. */
  readonly isElsewhere: boolean
  readonly stage: Stage
}

/** What others have open, as far as the bounds go. */
export interface OpenElsewhere {
  readonly id: string
  readonly client: string | undefined
  readonly isPaid: boolean
  readonly bytes: number
  readonly files: number
}

/** What others have left: their end was ordered or begun, and nobody sees to it. */
export interface LeftUploads {
  readonly left: readonly string[]
  /** Their money is to be spent or refunded, by the machine that leads. */
  readonly owing: readonly MultipartRecord[]
}

/** Whether somebody may put an upload together: he does now; another does; there is nothing to be put together. */
export type Claimed = 'ours' | 'elsewhere' | 'over'

/**
 * Records of uploads in parts, of this machine or of all of a cluster. A change is visible here at once, and is written soon:
 * wait for `written` before it is acknowledged.
 */
export interface PartRecords {
  /** Other machines have them, too. */
  readonly isShared: boolean
  /** Records of uploads that are over and came to nothing. */
  readonly failed: number
  /** Time of the last change by an earlier process. Undefined: other machines have changed them, too. */
  readonly newestMs: number | undefined
  /** Time of day by the clock of the engine that all machines share. Undefined: this machine alone has them. */
  readonly nowMs: number | undefined
  /**
   * Reads an upload as it is now. Undefined: this machine alone has it, so `find` knows it. `takesOver`: requests that bring
   * bytes of it to other machines bring no more. Rejects where the engine does not answer.
   */
  load(id: string, takesOver?: boolean): undefined | Promise<SeenUpload>
  /** The record as it was known here last. */
  find(id: string): MultipartRecord | undefined
  /** Those of a kind that are due until `untilMs`, the first due first. Of a cluster: of those that `lookDue` found. */
  due(kind: DueKind, untilMs: number, limit: number): MultipartRecord[]
  /** Undefined: `due` knows all. False: another machine sees to it. */
  lookDue(): undefined | Promise<boolean>
  /** All that are open, here and elsewhere. Undefined: this machine alone has any, or the engine does not answer. */
  listOpen(): undefined | Promise<readonly OpenElsewhere[] | undefined>
  /** What others have left. Undefined: there are no others. */
  lookAround(): undefined | Promise<LeftUploads | undefined>
  put(record: MultipartRecord): void
  remove(ids: readonly string[]): void
  /** Resolves when what was changed of it is written down. Rejects where that was refused, or others have changed it. */
  written(id: string): Promise<void>
  /** The same, and it outlives a power cut. */
  flushed(id: string): Promise<void>
  /** Takes it, to put it together for `uploader`. A process that stands still or ends loses it after some seconds. */
  claim(id: string, uploader: Uploader): Promise<Claimed>
  /** Whether it is still this one that puts it together. */
  confirm(id: string, stage: Stage): Promise<boolean>
  /** Ends what `claim` began; `record`: what has become of it. False: another one does it now, and nothing of this counts. */
  release(id: string, record?: MultipartRecord): Promise<boolean>
  close(): Promise<void>
}

/** The answer where a process has put something together that another one has taken over. */
export const overtaken: UploadAnswer = {
  status: 503,
  text: 'Another machine has taken this upload over: try again',
  lines: '\r\nRetry-After: 1',
}
