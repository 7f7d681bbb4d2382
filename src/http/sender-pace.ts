import type { Clock } from '../actor/clock.js'
import { expected } from '../format/bug.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'

export interface SenderPaceOptions {
  /** A sender that sends nothing for so long is given up. */
  readonly stallMs: number
  /** What comes more slowly than this in the long run uses up `stallMs`, too. */
  readonly bytesPerSecondMin: number
}

/** Least rate of everything that is read from other machines: half a megabyte in two minutes. */
export const bytesPerSecondMin = 4096

/**
 * The least pace of a sender, for every body from another machine. Waiting uses up a budget of `stallMs`, and each byte returns
 * the time that it may take at the least rate. So silence ends a transfer after `stallMs`, and a very slow sender ends it a
 * little later. A transfer that is fast enough may take any time. Only time in which a reader waits counts, so that a slow
 * client does not make a sender look slow.
 */
export class SenderPace {
  #budgetMs: number
  #sinceMs: number | undefined

  constructor(
    private readonly options: SenderPaceOptions,
    private readonly clock: Clock,
  ) {
    this.#budgetMs = options.stallMs
  }

  /** Milliseconds until the sender is given up, if nothing comes; 0 or less: it is to be given up. */
  get leftMs(): number {
    const waitedMs = this.#sinceMs === undefined ? 0 : this.clock.monotonic() - this.#sinceMs
    return this.#budgetMs - waitedMs
  }

  /** Somebody waits for the sender from now on. */
  wait(): void {
    this.#sinceMs ??= this.clock.monotonic()
  }

  /** So many bytes came, and nobody waits until `wait` is called again. */
  came(bytes: number): void {
    const { stallMs, bytesPerSecondMin: rate } = this.options
    this.#budgetMs = Math.min(stallMs, this.leftMs + (bytes * 1000) / rate)
    this.#sinceMs = undefined
  }
}

/**
 * The pieces of a body, as long as they come fast enough; the last is a refusal (`late`) where they do not, and (`upstream`)
 * where the body breaks. `end` stops the sender. `from` names the sender in the message.
 */
export async function* paced(
  pieces: AsyncIterable<Uint8Array>,
  from: string,
  options: SenderPaceOptions,
  clock: Clock,
  end: () => void,
): AsyncGenerator<Uint8Array | Refusal, undefined> {
  const pace = new SenderPace(options, clock)
  const source = pieces[Symbol.asyncIterator]()
  let isOver = false
  try {
    for (;;) {
      pace.wait()
      const step = await nextWithin(source, from, pace, clock)
      if (isRefusal(step)) {
        yield step
        return undefined
      }
      if (step.done === true) {
        isOver = true
        return undefined
      }
      pace.came(step.value.length)
      yield step.value
    }
  } finally {
    if (!isOver) end()
  }
}

/** The next step of `source`, waited for as long as `pace` allows. `late`: it did not come; `upstream`: the body broke. */
export async function nextWithin<Bytes extends Uint8Array>(
  source: AsyncIterator<Bytes>,
  from: string,
  pace: SenderPace,
  clock: Clock,
): Promise<IteratorResult<Bytes> | Refusal> {
  const broken = (error: unknown): Refusal =>
    refuse('upstream', 'upstream', `${from} broke off: ${expected(error).message}`)
  const late = refuse('late', 'upstream', `${from} sends too little for too long`)
  return orLate(source.next().catch(broken), pace.leftMs, late, clock)
}

/** The result of `work`, or `late` where it takes longer than `ms`. The work may go on then; its result is dropped. */
export async function orLate<T>(
  work: Promise<T>,
  ms: number,
  late: Refusal,
  clock: Clock,
): Promise<T | Refusal> {
  let cancel = (): void => undefined
  const patience = new Promise<Refusal>((resolve) => {
    // What waits in a socket is read first: this thread may not have run for a while.
    const timer = clock.after(Math.max(0, ms), () => setImmediate(() => resolve(late)))
    cancel = () => timer.cancel()
  })
  try {
    return await Promise.race([work, patience])
  } finally {
    cancel()
  }
}
