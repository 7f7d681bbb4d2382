import type { Timer } from '../../actor/clock.js'
import { diskAnswer, type UploadAnswer } from '../requests/upload-answers.js'
import type { Uploader } from '../requests/uploader.js'
import type { FinishingParts } from './finishing.js'
import type { LiveUpload } from './live-uploads.js'
import type { MultipartRecord } from './multipart-record.js'
import { OpenCount } from './open-count.js'
import type { OpenElsewhere } from './part-records.js'
import { uploaderIn } from './upload-outcome.js'

/** What other machines have, and have left, is looked at so often. */
const aroundMs = 2000
/** Money that another machine may still be moving is left to it for so long. */
const owedMs = 30_000

/** The uploads that are open, as this machine knows them. */
export interface ClusterUploadsHost {
  live(id: string): LiveUpload | undefined
  /** Reads it as all machines have it. */
  load(id: string): Promise<unknown> | undefined
  /** Counts what another machine has open of an upload. */
  countElsewhere(upload: OpenElsewhere): void
  /** Forgets those that are not in `open`, and that nobody has seen since `sinceMs` (monotonic). */
  keepOnly(open: ReadonlySet<string>, sinceMs: number): void
  finish(id: string, live: LiveUpload, uploader: Uploader): Promise<UploadAnswer>
  finishUntilDecided(id: string, uploader: Uploader): void
  /** The end of the service waits for it. */
  track<T>(work: Promise<T>): Promise<T>
}

/** Counts what the other machines of a cluster have open, and goes on with what they have left. */
export class ClusterUploads {
  readonly #count: OpenCount
  readonly #timer: Timer
  #looking: Promise<void> | undefined

  /** Begins. Looks end when `closing` fires. */
  constructor(
    private readonly parts: Pick<FinishingParts, 'clock' | 'paid' | 'records'>,
    private readonly host: ClusterUploadsHost,
    private readonly closing: AbortSignal,
  ) {
    const { clock, records } = parts
    this.#count = new OpenCount(records, clock)
    this.#timer = clock.every(aroundMs, () => this.#look())
    this.#look()
  }

  close(): void {
    this.#timer.cancel()
  }

  #look(): void {
    this.#looking ??= this.host.track(this.#lookOnce()).finally(() => {
      this.#looking = undefined
    })
  }

  async #lookOnce(): Promise<void> {
    const { records, clock, paid } = this.parts
    const begunMs = clock.monotonic()
    const open = await this.#count.count((one) => this.host.countElsewhere(one))
    if (open !== undefined) this.host.keepOnly(open, begunMs)
    const around = await records.lookAround()
    if (around === undefined || this.closing.aborted) return
    for (const id of around.left) await this.#goOn(id).catch(diskAnswer)
    const isLeft = ({ changedMs }: MultipartRecord): boolean => clock.now() - changedMs > owedMs
    for (const record of around.owing.filter(isLeft)) paid?.settleOwed(record)
  }

  /** Its end was ordered, or begun by a machine that is silent. */
  async #goOn(id: string): Promise<void> {
    const { host } = this
    if (host.live(id)?.attempt !== undefined) return
    await host.load(id)
    const [record, live] = [this.parts.records.find(id), host.live(id)]
    if (record === undefined || live === undefined) return
    const uploader = uploaderIn(record)
    if (record.state === 'asked') host.finishUntilDecided(id, uploader)
    else void host.finish(id, live, uploader)
  }
}
