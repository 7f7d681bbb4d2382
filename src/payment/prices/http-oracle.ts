import { Backoff } from '../../actor/backoff.js'
import { type Clock, elapsing, type Timer } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import { JsonPeer } from '../../admission/json-peer.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { isFar, stepped, together } from './agreement.js'
import { isPlausible, type Oracle } from './oracle.js'
import { dialectOf, type SourceRates } from './price-sources.js'
import type { Rates } from './rates.js'

export interface HttpOracleOptions {
  /** Sources of prices (price-sources.ts says which dialects are spoken). */
  readonly urls: readonly string[]
  readonly askEveryMs: number
  /** Prices older than this are none. */
  readonly staleMs: number
  readonly limitMs: number
}

/** Where the last prices are kept over restarts: the first prices of a new start are compared with them. */
export interface OracleMemory {
  read(): Promise<Rates | undefined>
  write(rates: Rates): Promise<void>
}

/** A jump that sources confirm for so long is accepted. */
const jumpMs = 30 * 60_000
/** Pause after a source did not answer, however many prices are requested. */
const firstPauseMs = 5000

interface Source {
  readonly peer: JsonPeer
  readonly dialect: ReturnType<typeof dialectOf>
}

/** Prices by the majority of several sources, refused where they jump, or are implausible or old. */
export class HttpOracle implements Oracle {
  readonly #sources: readonly Source[]
  readonly #timer: Timer
  readonly #pause: Backoff
  #known: { readonly rates: Rates; readonly ageMs: () => number } | undefined
  /** Rates of the last start: too old to sell by, good enough to compare with. */
  #remembered: Promise<Rates | undefined> | undefined
  #jump: { readonly rates: Rates; readonly sinceMs: number } | undefined
  #asking: Promise<void> | undefined

  constructor(
    private readonly options: HttpOracleOptions,
    private readonly clock: Clock,
    private readonly log: Log,
    private readonly memory?: OracleMemory,
  ) {
    const { urls, askEveryMs } = options
    this.#sources = urls.map((url) => ({
      peer: new JsonPeer({ url, connectionsMax: 2 }, clock),
      dialect: dialectOf(url),
    }))
    const restMaxMs = Math.max(firstPauseMs, askEveryMs)
    this.#pause = new Backoff({ failuresMax: 1, restMs: firstPauseMs, restMaxMs }, clock)
    this.#timer = clock.every(askEveryMs, () => void this.refresh())
  }

  get about(): Oracle['about'] {
    const age = this.#known === undefined ? {} : { ageMs: this.#known.ageMs() }
    return { source: this.options.urls.map(withoutQuery).join(' '), ...age }
  }

  async rates(): Promise<Rates | Refusal> {
    if (!this.#isFresh() && (this.#asking !== undefined || !this.#pause.isOn)) await this.refresh()
    const known = this.#known
    if (known !== undefined && this.#isFresh()) return known.rates
    return refuse('upstream', 'upstream', 'no source of prices can be trusted now')
  }

  /** Asks all sources now. Never rejects. */
  refresh(): Promise<void> {
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined
    })
    return this.#asking
  }

  close(): void {
    this.#timer.cancel()
    for (const { peer } of this.#sources) void peer.close()
  }

  #isFresh(): boolean {
    const known = this.#known
    return known !== undefined && known.ageMs() < this.options.staleMs
  }

  async #ask(): Promise<void> {
    const answers = await Promise.all(this.#sources.map((source) => this.#answerOf(source)))
    const able = this.#sources.map(({ dialect }) => dialect.assets)
    const before = this.#known?.rates ?? (await this.#lastStart())
    const agreed = together(answers, able, before)
    if (isRefusal(agreed)) {
      this.#pause.failed()
      this.log.warn(
        { sources: answers.length, reason: agreed.message },
        'prices of tokens could not be fetched',
      )
      return
    }
    const atMs = this.clock.monotonic()
    if (before === undefined) {
      // Nothing to compare with: several sources must confirm it, or it must lie where prices have been.
      if (agreed.isWitnessed || isPlausible(agreed.rates)) {
        this.#believe(agreed.rates)
        return
      }
      this.#pause.failed()
      this.log.error(
        'the first prices are implausible and no second source confirms them: add one to PAYMENT_ORACLE_URLS',
      )
      return
    }
    if (!isFar(before, agreed.rates)) this.#believe(stepped(before, agreed.rates))
    else this.#jumped(agreed.rates, atMs)
  }

  /** A rate that differs by this factor counts as a mistake until it was repeated for a while. */
  #jumped(rates: Rates, atMs: number): void {
    const jump =
      this.#jump === undefined || isFar(this.#jump.rates, rates) ? { rates, sinceMs: atMs } : this.#jump
    this.#jump = jump
    if (atMs - jump.sinceMs >= jumpMs) {
      this.#believe(rates)
      return
    }
    this.#pause.failed()
    this.log.error('prices have jumped: they are not used until they have been the same for half an hour')
  }

  #believe(rates: Rates): void {
    this.#known = { rates, ageMs: elapsing(this.clock) }
    this.#jump = undefined
    this.#pause.well()
    void this.memory?.write(rates).catch((error: unknown) => {
      this.log.warn({ err: error }, 'prices could not be kept for the next start')
    })
  }

  async #lastStart(): Promise<Rates | undefined> {
    if (this.memory === undefined) return undefined
    this.#remembered ??= this.memory.read().catch((error: unknown) => {
      this.log.warn({ err: error }, 'the prices of the last start cannot be read')
      this.#remembered = undefined
      return undefined
    })
    return this.#remembered
  }

  async #answerOf({ peer, dialect }: Source): Promise<SourceRates | undefined> {
    const answer = await peer.ask(dialect.query, undefined, this.options.limitMs)
    return 'why' in answer || answer.status !== 200 ? undefined : dialect.read(answer.body)
  }
}

/** A source as it may be named in public: its query may be a key. */
function withoutQuery(address: string): string {
  return address.replace(/\?.*$/, '')
}
