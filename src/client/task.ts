import { asClientError } from './errors.js'

/** What happens while an operation runs. Names and fields of callbacks are those of the interface. */
export type ProgressEvent =
  | { readonly type: 'signing' | 'upload'; readonly processedBytes: number; readonly totalBytes: number }
  | { readonly type: 'signed'; readonly id: string }
  | { readonly type: 'notice'; readonly message: string }
  | FileEvent
  | ({ readonly type: 'folder' } & FolderProgress)

export interface FilePlace {
  readonly fileName: string
  readonly fileIndex: number
  readonly totalFiles: number
}

export type FileEvent =
  | ({ readonly type: 'file-start'; readonly fileSize: number } & FilePlace)
  | ({
      readonly type: 'file-progress'
      readonly fileProcessedBytes: number
      readonly fileTotalBytes: number
      readonly step: 'signing' | 'upload'
    } & FilePlace)
  | ({ readonly type: 'file-complete'; readonly id: string } & FilePlace)
  | ({ readonly type: 'file-error'; readonly error: Error } & FilePlace)

export interface FolderProgress {
  readonly processedFiles: number
  readonly totalFiles: number
  readonly processedBytes: number
  readonly totalBytes: number
  readonly currentPhase: 'hashing' | 'files' | 'manifest'
}

interface Bytes {
  readonly totalBytes: number
  readonly processedBytes: number
}

/** Callbacks of uploads; all may be left out. */
export interface UploadEvents {
  onProgress?(progress: Bytes & { readonly step: 'signing' | 'upload' }): void
  onError?(error: { readonly error: Error; readonly step: 'signing' | 'upload' }): void
  onSuccess?(): void
  onUploadProgress?(progress: Bytes): void
  onUploadError?(error: Error): void
  onUploadSuccess?(): void
  onSigningProgress?(progress: Bytes): void
  onSigningError?(error: Error): void
  onSigningSuccess?(): void
  onFileStart?(file: FilePlace & { readonly fileSize: number }): void
  onFileProgress?(
    file: FilePlace & { fileProcessedBytes: number; fileTotalBytes: number; step: 'signing' | 'upload' },
  ): void
  onFileComplete?(file: FilePlace & { readonly id: string }): void
  onFileError?(file: FilePlace & { readonly error: Error }): void
  onFolderProgress?(progress: FolderProgress): void
  onFolderError?(error: Error): void
  onFolderSuccess?(): void
}

/** Takes events of an operation. */
export type Emit = (event: ProgressEvent) => void

function emitTo(events: UploadEvents, event: ProgressEvent): void {
  if (event.type === 'signing') {
    events.onSigningProgress?.(event)
    events.onProgress?.({ ...event, step: 'signing' })
  } else if (event.type === 'upload') {
    events.onUploadProgress?.(event)
    events.onProgress?.({ ...event, step: 'upload' })
  } else if (event.type === 'signed') events.onSigningSuccess?.()
  else if (event.type === 'file-start') events.onFileStart?.(event)
  else if (event.type === 'file-progress') events.onFileProgress?.(event)
  else if (event.type === 'file-complete') events.onFileComplete?.(event)
  else if (event.type === 'file-error') events.onFileError?.(event)
  else if (event.type === 'folder') events.onFolderProgress?.(event)
}

/** Events that a later one of the same kind replaces, so that a slow reader keeps a short queue. */
const replaced = new Set<ProgressEvent['type']>(['signing', 'upload', 'folder', 'file-progress'])

/** Most events that wait for a slow reader; the oldest go first. */
const waitingMax = 10_000

/**
 * An operation under way: await it for its result, or iterate over it for what happens meanwhile. Iteration ends with the
 * operation and throws what it rejects with. Leaving the iteration early does not stop the operation: its signal does.
 */
export class UploadTask<Result> implements PromiseLike<Result>, AsyncIterable<ProgressEvent> {
  readonly result: Promise<Result>
  #waiting: ProgressEvent[] = []
  #iterated = false
  #ended = false
  #wake: (() => void) | undefined

  constructor(
    kind: 'item' | 'folder',
    events: UploadEvents | undefined,
    run: (emit: Emit) => Promise<Result>,
  ) {
    let step: 'signing' | 'upload' = 'signing'
    this.result = run((event) => {
      if (event.type === 'upload') step = 'upload'
      if (events !== undefined) emitTo(events, event)
      this.#push(event)
    }).then(
      (value) => {
        if (kind === 'folder') events?.onFolderSuccess?.()
        else events?.onUploadSuccess?.()
        if (kind === 'item') events?.onSuccess?.()
        this.#end()
        return value
      },
      (error: unknown) => {
        const failure = error instanceof Error ? error : new Error(String(error))
        if (kind === 'folder') events?.onFolderError?.(failure)
        else if (step === 'signing') events?.onSigningError?.(failure)
        else events?.onUploadError?.(failure)
        if (kind === 'item') events?.onError?.({ error: failure, step })
        this.#end()
        throw error
      },
    )
    // A caller that only iterates gets the failure there.
    this.result.catch((error) => error)
  }

  // biome-ignore lint/suspicious/noThenProperty: a task is awaited as a promise is
  then<One = Result, Other = never>(
    onDone?: ((value: Result) => One | PromiseLike<One>) | null,
    onFailed?: ((reason: unknown) => Other | PromiseLike<Other>) | null,
  ): Promise<One | Other> {
    return this.result.then(onDone, onFailed)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ProgressEvent, void, void> {
    this.#iterated = true
    for (;;) {
      const event = this.#waiting.shift()
      if (event !== undefined) yield event
      else if (this.#ended) break
      else await this.#woken()
    }
    await this.result
  }

  #woken(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  #push(event: ProgressEvent): void {
    const last = this.#waiting.at(-1)
    if (last?.type === event.type && replaced.has(event.type)) this.#waiting.pop()
    this.#waiting.push(event)
    if (this.#waiting.length > (this.#iterated ? waitingMax : 100)) this.#waiting.shift()
    this.#wake?.()
  }

  #end(): void {
    this.#ended = true
    this.#wake?.()
  }
}

/** Runs one file's work; a failure becomes an event of that file and is thrown on. */
export async function reportingFailure<Result>(
  emit: Emit,
  place: FilePlace,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    emit({ type: 'file-error', ...place, error: asClientError(error) })
    throw error
  }
}
