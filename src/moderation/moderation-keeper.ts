import type { Clock, Timer } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { expected } from '../format/bug.js'
import { type Refusal, refuse } from '../format/refusal.js'
import { diskRefusal, isDiskError } from '../store/disk-error.js'
import type { BlockFilter } from './block-filter.js'
import type { ModerationReply, ModerationRequest } from './moderation-messages.js'
import type { ModerationStore } from './moderation-store.js'

/**
 * Interval at which the list is read for changes that the system did not tell of, because other processes write it too. A look
 * without changes takes some microseconds.
 */
const lookEachMs = 1000

/** Entries read at once; a list of a million is loaded within a second or two. */
const batch = 10_000

/** Keeps the shared filter up to date with the list on disk, and writes the operator's changes to the list. */
export class ModerationKeeper {
  #seen = 0
  readonly #timer: Timer
  readonly #hearing: Timer

  /** Fills the filter from disk before it returns. Throws where the list cannot be read: nothing may be served then. */
  constructor(
    private readonly store: ModerationStore,
    private readonly filter: BlockFilter,
    private readonly clock: Clock,
    private readonly log: Log,
    /**
     * Size of the blob with a digest, where one is here: content that is blocked by its hash was usually served here
     * before.
     */
    private readonly blobSize: (digest: Uint8Array) => number | undefined = () => undefined,
  ) {
    this.#takeOver()
    filter.fill()
    const look = (): void => {
      if (store.mayHaveChanged(clock.now())) this.#takeOver()
    }
    this.#timer = clock.every(lookEachMs, look)
    this.#hearing = store.hearWrites(look)
  }

  /** Replies when the change is on disk and every thread sees it. Where writing fails, the list stays as it was. */
  handle(message: ModerationRequest): ModerationReply | Refusal {
    const { subject, by } = message
    const atSeconds = Math.floor(this.clock.now() / 1000)
    const what = `${subject.kind} ${subject.key}`
    try {
      const ground = message.kind === 'block' ? message.ground : {}
      const changed =
        message.kind === 'block'
          ? this.store.block([subject], message.ground, atSeconds, true)
          : this.store.release([subject])
      this.#takeOver()
      this.store.note({ atSeconds, by, action: message.kind, what, ...ground })
      this.log.info({ what, by, ...ground }, message.kind === 'block' ? 'blocked' : 'released')
      return { kind: 'done', changed: changed.length > 0 }
    } catch (error) {
      this.log.error({ err: expected(error), what, by }, 'the block list could not be written')
      if (isDiskError(error)) return diskRefusal(error)
      return refuse('upstream', 'self', 'the block list could not be written')
    }
  }

  async close(): Promise<void> {
    this.#timer.cancel()
    this.#hearing.cancel()
    await this.store.close()
  }

  /** Adds to the filter what came since the last look, whoever wrote it. */
  #takeOver(): void {
    for (;;) {
      const found = this.store.since(this.#seen, batch)
      const measured: [Uint8Array, number][] = []
      for (const { sequence, kind, key } of found) {
        if (kind === 'name') this.filter.addName(Buffer.from(key).toString('utf8'))
        else if (kind === 'id') this.filter.addId(key)
        else this.filter.addHash(key, this.#sizeOf(key, measured))
        this.#seen = sequence
      }
      if (measured.length > 0) this.#keep(measured)
      if (found.length < batch) return
    }
  }

  /** What is found in the catalog goes into `measured`: the blob may be evicted before the next start. */
  #sizeOf(hash: Uint8Array, measured: [Uint8Array, number][]): number | undefined {
    const known = this.store.sizeOf(hash)
    if (known !== undefined) return known
    const found = this.blobSize(hash)
    if (found !== undefined) measured.push([hash, found])
    return found
  }

  #keep(measured: readonly [Uint8Array, number][]): void {
    try {
      this.store.measure(measured)
    } catch (error) {
      this.log.warn({ err: expected(error) }, 'sizes of blocked content could not be written')
    }
  }
}
