import { randomBytes } from 'node:crypto'
import { resolve, sep } from 'node:path'
import { BoundedMap } from '../actor/bounded-map.js'
import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { ChainIndex } from '../catalog/index-reader.js'
import { type Refusal, refuse } from '../format/refusal.js'
import { type ExportProgress, exportParquet } from './export.js'
import type { ExportOrder, ExportReply, ExportRequest, ExportState } from './export-protocol.js'

/** Folders of one export at most: some 300,000 files. */
const partitionsMax = 100_000
/** Exports whose end is remembered. */
const rememberedMax = 32

export interface ExporterOptions {
  /** Exports lie in it: `DATA_PATH/parquet`. */
  readonly root: string
  /** Blocks at the index's end that a fork may still take away. */
  readonly forkDepth: number
}

interface Job {
  readonly id: string
  readonly order: ExportOrder
  readonly lastHeight: number
  readonly progress: ExportProgress
  readonly startedMs: number
  readonly abort: AbortController
  end?: { readonly ms: number; readonly error?: string }
}

/** Writes parts of the index as Parquet files on an operator's order, one order at a time. */
export class Exporter {
  /** Keyed by their ids, the last one last. */
  readonly #jobs = new BoundedMap<string, Job>(rememberedMax)
  #last: Job | undefined
  #running: Promise<void> | undefined

  constructor(
    private readonly index: ChainIndex,
    private readonly options: ExporterOptions,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  /** True while an export is under way. */
  get busy(): boolean {
    return this.#running !== undefined
  }

  handle(request: ExportRequest): ExportReply | Refusal {
    if (request.export === 'begin') return this.#begin(request.order)
    const jobId = request.export === 'state' ? request.jobId : undefined
    const job = jobId === undefined ? this.#last : this.#jobs.get(jobId)
    if (request.export === 'cancel') job?.abort.abort(new Error('ended by the operator'))
    return { kind: 'export-state', state: job === undefined ? undefined : this.#stateOf(job) }
  }

  /** Ends the export under way; resolves when nothing of it is left. */
  async stop(): Promise<void> {
    this.#last?.abort.abort(new Error('ended because the gateway stops'))
    await this.#running
  }

  #begin(order: ExportOrder): ExportReply | Refusal {
    if (this.#running !== undefined && this.#last !== undefined) {
      return { kind: 'export-runs', state: this.#stateOf(this.#last) }
    }
    const folder = this.#folderOf(order.outputDir)
    if (folder === undefined) {
      return refuse('malformed', 'client', `outputDir must be a folder in ${this.options.root}`)
    }
    const { startHeight, endHeight, heightPartitionSize } = order
    this.index.refresh()
    const top = (this.index.topHeight() ?? -1) - this.options.forkDepth
    const lastHeight = Math.min(endHeight, top)
    if (startHeight > lastHeight) {
      return refuse(
        'malformed',
        'client',
        `no block from startHeight on is final: the last is ${Math.max(top, -1)}`,
      )
    }
    if ((lastHeight - startHeight) / heightPartitionSize > partitionsMax) {
      return refuse('malformed', 'client', `more than ${partitionsMax} partitions: raise heightPartitionSize`)
    }
    const job: Job = {
      id: randomBytes(8).toString('hex'),
      order: { ...order, outputDir: folder },
      lastHeight,
      progress: { height: undefined, files: 0, rows: { blocks: 0, transactions: 0, tags: 0 } },
      startedMs: this.clock.now(),
      abort: new AbortController(),
    }
    this.#remember(job)
    this.#running = this.#run(job).finally(() => {
      this.#running = undefined
    })
    return { kind: 'export-begun', state: this.#stateOf(job) }
  }

  async #run(job: Job): Promise<void> {
    const { id, order, lastHeight, progress, abort } = job
    try {
      const given = { folder: order.outputDir, jobId: id, lastHeight }
      await exportParquet(this.index, given, order, progress, abort.signal)
      job.end = { ms: this.clock.now() }
      this.log.info({ jobId: id, ...progress.rows, folder: order.outputDir }, 'an export is complete')
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      job.end = { ms: this.clock.now(), error: reason }
      this.log.warn({ jobId: id, reason }, 'an export failed')
    }
  }

  #remember(job: Job): void {
    this.#last = job
    this.#jobs.set(job.id, job)
  }

  /** Relative names begin at the exports' own folder; undefined: it would lie elsewhere. */
  #folderOf(outputDir: string): string | undefined {
    const { root } = this.options
    const folder = resolve(root, outputDir)
    return folder === root || folder.startsWith(root + sep) ? folder : undefined
  }

  #stateOf({ id, order, lastHeight, progress, startedMs, end }: Job): ExportState {
    const { height, rows, files } = progress
    return {
      jobId: id,
      status: end === undefined ? 'running' : end.error === undefined ? 'completed' : 'errored',
      ...order,
      lastHeight,
      rows: { ...rows },
      files,
      ...(height === undefined ? {} : { height }),
      durationInSeconds: Math.max(0, ((end?.ms ?? this.clock.now()) - startedMs) / 1000),
      ...(end === undefined ? {} : { endTime: new Date(end.ms).toISOString(), endTimestamp: end.ms }),
      ...(end?.error === undefined ? {} : { error: end.error }),
    }
  }
}
