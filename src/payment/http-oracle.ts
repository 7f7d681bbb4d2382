import type { Clock, Timer } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { JsonPeer } from '../admission/json-peer.js'
import { type Refusal, refuse } from '../format/refusal.js'
import type { Oracle } from './oracle.js'
import { type Asset, assets, type Currency, currencies, type Rates, readRate } from './rates.js'

export interface HttpOracleOptions {
  /**
   * Addresses that answer as CoinGecko's /simple/price does: `{arweave: {usd: 6.25, eur: 5.6, ...}, ethereum: {usd: ...}}`. They
   * are asked for `?ids=...&vs_currencies=...`.
   */
  readonly urls: readonly string[]
  readonly askEveryMs: number
  /** Prices older than this are none. */
  readonly staleMs: number
  readonly limitMs: number
}

const names: Readonly<Record<Asset, string>> = {
  ar: 'arweave',
  ario: 'ar-io-network',
  eth: 'ethereum',
  sol: 'solana',
  kyve: 'kyve-network',
  pol: 'polygon-ecosystem-token',
  usdc: 'usd-coin',
}

const query = `?ids=${Object.values(names).join(',')}&vs_currencies=${currencies.join(',')}`

/** A rate that is so many times another one is a mistake of somebody, until it has been said for a while. */
const jumpMax = 2n
/** A jump that sources go on saying for so long is what happened. */
const jumpMs = 30 * 60_000

interface Jump {
  readonly rates: Rates
  readonly sinceMs: number
}

/** Prices of several sources: the median of each, refused where they jump or are old. */
export class HttpOracle implements Oracle {
  readonly #peers: readonly JsonPeer[]
  readonly #timer: Timer
  #known: { readonly rates: Rates; readonly atMs: number } | undefined
  #jump: Jump | undefined
  #asking: Promise<void> | undefined

  constructor(
    private readonly options: HttpOracleOptions,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {
    this.#peers = options.urls.map((url) => new JsonPeer({ url, connectionsMax: 2 }, clock))
    this.#timer = clock.every(options.askEveryMs, () => void this.#refresh())
  }

  get about(): Oracle['about'] {
    const age = this.#known === undefined ? {} : { ageMs: this.clock.monotonic() - this.#known.atMs }
    return { source: this.options.urls.join(' '), ...age }
  }

  async rates(): Promise<Rates | Refusal> {
    if (!this.#isFresh()) await this.#refresh()
    const known = this.#known
    if (known !== undefined && this.#isFresh()) return known.rates
    return refuse('upstream', 'upstream', 'no source of prices can be trusted now')
  }

  /** Asks all sources now. Never rejects. */
  refresh(): Promise<void> {
    return this.#refresh()
  }

  close(): void {
    this.#timer.cancel()
    for (const peer of this.#peers) void peer.close()
  }

  #isFresh(): boolean {
    const known = this.#known
    return known !== undefined && this.clock.monotonic() - known.atMs < this.options.staleMs
  }

  #refresh(): Promise<void> {
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined
    })
    return this.#asking
  }

  async #ask(): Promise<void> {
    const answers = await Promise.all(
      this.#peers.map((peer) => peer.ask(query, undefined, this.options.limitMs)),
    )
    const read = answers.flatMap((answer) =>
      'why' in answer || answer.status !== 200 ? [] : ratesIn(answer.body),
    )
    // One of three may lie or be wrong; of two that differ nobody knows which.
    if (read.length * 2 <= this.#peers.length) {
      this.log.warn(
        { sources: this.#peers.length, answers: read.length },
        'too few sources of prices have answered',
      )
      return
    }
    const rates = medianOf(read)
    const atMs = this.clock.monotonic()
    const known = this.#known
    if (known === undefined || !jumped(known.rates, rates)) {
      this.#known = { rates, atMs }
      this.#jump = undefined
      return
    }
    const jump =
      this.#jump === undefined || jumped(this.#jump.rates, rates) ? { rates, sinceMs: atMs } : this.#jump
    this.#jump = jump
    if (atMs - jump.sinceMs < jumpMs) {
      this.log.error('prices have jumped: they are not used until they have been the same for half an hour')
      return
    }
    this.#known = { rates, atMs }
    this.#jump = undefined
  }
}

function decimalOf(value: unknown): bigint | undefined {
  if (typeof value !== 'number' || !Number.isFinite(value) || value <= 0) return undefined
  return readRate(value.toFixed(12))
}

/** All rates of an answer; nothing where one is missing, not a number, or zero. */
function ratesIn(body: Readonly<Record<string, unknown>>): Rates[] {
  const of = (asset: Asset): Readonly<Record<string, unknown>> => {
    const found = body[names[asset]]
    return typeof found === 'object' && found !== null ? (found as Readonly<Record<string, unknown>>) : {}
  }
  const usd: Partial<Record<Asset, bigint>> = {}
  for (const asset of assets) {
    const rate = decimalOf(of(asset).usd)
    if (rate === undefined) return []
    usd[asset] = rate
  }
  const perUsd: Partial<Record<Currency, bigint>> = {}
  const arUsd = of('ar').usd
  for (const currency of currencies) {
    const price = of('ar')[currency]
    const rate = typeof price === 'number' && typeof arUsd === 'number' ? decimalOf(price / arUsd) : undefined
    if (rate === undefined) return []
    perUsd[currency] = rate
  }
  return [{ usd: usd as Rates['usd'], perUsd: perUsd as Rates['perUsd'] }]
}

function middle(values: readonly bigint[]): bigint {
  const sorted = [...values].sort((one, two) => (one < two ? -1 : 1))
  const at = sorted.length >> 1
  const [low = 0n, high = 0n] = [sorted[at - 1], sorted[at]]
  return sorted.length % 2 === 1 ? high : (low + high) / 2n
}

function medianOf(read: readonly Rates[]): Rates {
  const usd = assets.map((asset) => [asset, middle(read.map((one) => one.usd[asset]))])
  const perUsd = currencies.map((currency) => [currency, middle(read.map((one) => one.perUsd[currency]))])
  return {
    usd: Object.fromEntries(usd) as Rates['usd'],
    perUsd: Object.fromEntries(perUsd) as Rates['perUsd'],
  }
}

function jumped(before: Rates, now: Rates): boolean {
  const far = (one: bigint, two: bigint): boolean => one > two * jumpMax || two > one * jumpMax
  return (
    assets.some((asset) => far(before.usd[asset], now.usd[asset])) ||
    currencies.some((currency) => far(before.perUsd[currency], now.perUsd[currency]))
  )
}
