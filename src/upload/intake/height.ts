import type { BlockNews } from '../../actor/block-news.js'
import type { Clock, Timer } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import type { Chain, KnownHeight } from '../../chain/chain.js'
import { isRefusal } from '../../format/refusal.js'
import { writePatiently } from '../../store/patient-write.js'
import type { Uploads } from '../records/uploads.js'

const word = 'height'
const timeWord = 'height-ms'

/** The height of the chain, polled and kept on disk, so that no upload waits for a node. */
export class Height {
  #known: number | undefined
  /** What an earlier run knew: a node that contradicts it decides nothing alone. */
  readonly #before: KnownHeight | undefined
  #isAsking = false
  #isOutdated = false
  #isKeeping = false
  #timer: Timer | undefined

  constructor(
    private readonly chain: Pick<Chain, 'height'>,
    private readonly uploads: Uploads,
    private readonly clock: Clock,
    private readonly closing: AbortSignal,
    private readonly logger: Pick<Log, 'error' | 'info'>,
  ) {
    const stored = uploads.value(word)
    this.#known = stored === undefined ? undefined : Number(stored)
    // Older releases did not keep the time.
    const sinceMs = Number(uploads.value(timeWord) ?? 0)
    if (this.#known !== undefined)
      this.#before = { height: this.#known, ageMs: Math.max(0, clock.now() - sinceMs) }
  }

  get known(): number | undefined {
    return this.#known
  }

  /**
   * Asks at once, each `everyMs` from then on, and at each of the `news` that the chain has changed. Resolves when the first
   * answer is here, or did not come.
   */
  async start(everyMs: number, news?: (heard: () => void) => BlockNews): Promise<void> {
    const heard = news?.(() => this.#hear())
    this.closing.addEventListener('abort', () => heard?.close())
    await this.#ask()
    if (this.closing.aborted) return
    this.#timer = this.clock.every(everyMs, () => void this.#ask())
    this.closing.addEventListener('abort', () => this.#timer?.cancel())
  }

  /** One question at a time: a node may be slower than the timer. */
  async #ask(): Promise<void> {
    if (this.#isAsking) return
    this.#isAsking = true
    this.#isOutdated = false
    await this.#look()
    this.#isAsking = false
    if (this.#isOutdated) void this.#ask()
  }

  /** What a node answers meanwhile may be older than the news. */
  #hear(): void {
    this.#isOutdated = true
    void this.#ask()
  }

  async #look(): Promise<void> {
    const height = await this.chain.height({ signal: this.closing }, this.#before)
    if (isRefusal(height) || this.closing.aborted || height === this.#known) return
    this.#known = height
    // Not awaited: a start on a full disk must not wait for room.
    void this.#keep()
  }

  /** Where the disk is full one waits for it, and writes the height of that time; those that come meanwhile need not. */
  async #keep(): Promise<void> {
    if (this.#isKeeping) return
    this.#isKeeping = true
    const { environment } = this.uploads
    const put = (): void =>
      environment.write(() => {
        this.uploads.putValue(word, String(this.#known))
        this.uploads.putValue(timeWord, String(this.clock.now()))
      })
    await writePatiently(put, this.closing, this.logger)
    this.#isKeeping = false
  }
}
