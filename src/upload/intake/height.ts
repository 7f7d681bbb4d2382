import type { Clock, Timer } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import type { Chain } from '../../chain/chain.js'
import { isRefusal } from '../../format/refusal.js'
import { writePatiently } from '../../store/patient-write.js'
import type { Uploads } from '../records/uploads.js'

const word = 'height'

/** The height of the chain, polled and kept on disk, so that no upload waits for a node. */
export class Height {
  #known: number | undefined
  #isAsking = false
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
  }

  get known(): number | undefined {
    return this.#known
  }

  /** Asks at once, and each `everyMs` from then on. Resolves when the first answer is here, or did not come. */
  async start(everyMs: number): Promise<void> {
    await this.#ask()
    if (this.closing.aborted) return
    this.#timer = this.clock.every(everyMs, () => void this.#ask())
    this.closing.addEventListener('abort', () => this.#timer?.cancel())
  }

  /** One question at a time: a node may be slower than the timer. */
  async #ask(): Promise<void> {
    if (this.#isAsking) return
    this.#isAsking = true
    const height = await this.chain.height({ signal: this.closing })
    this.#isAsking = false
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
    const put = (): void => environment.write(() => this.uploads.putValue(word, String(this.#known)))
    await writePatiently(put, this.closing, this.logger)
    this.#isKeeping = false
  }
}
