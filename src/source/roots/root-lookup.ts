import { BoundedMap } from '../../actor/bounded-map.js'
import { Breaker, type BreakerOptions } from '../../actor/breaker.js'
import { CallShares } from '../../actor/call-shares.js'
import type { Clock } from '../../actor/clock.js'
import { textOfBytes } from '../../format/bytes.js'
import { Gathered } from '../../format/gathered.js'
import { type Id, parseId } from '../../format/id.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import { isUnsureAbsence } from '../../format/unsure-absence.js'
import { unknownForNow } from '../refusals.js'
import type { Hints, Provenance } from '../source-messages.js'
import { type OwnName, readAnswerHeaders, trailHeaders } from '../upstream/gateway-headers.js'
import { isConfined, passed, type TrailRules, trailKey } from '../upstream/trail.js'
import type { UpstreamAnswer } from '../upstream/upstream-answer.js'
import { UpstreamClient } from '../upstream/upstream-client.js'

export interface RootLookupOptions extends TrailRules {
  /** Base URLs of gateways, in the order in which they are used. */
  readonly gateways: readonly string[]
  readonly headMs: number
  /** Each gateway has one of its own. */
  readonly breaker: BreakerOptions
  /** Answers remembered, those that nobody knows included. */
  readonly rememberedMax: number
  readonly rememberedMs: number
  readonly release: string
}

/** Where an item lies, as somebody says: never believed, only looked at. */
export interface RootLookup {
  /**
   * Undefined where nobody knows it. A refusal (`unknownForNow`): that is not known, because the calls of now are used up, all of
   * them get no requests for a while, after failures, or none gave an answer. Never rejects. `client`: address of the one whose
   * share of the requests it takes; empty: of this program itself.
   */
  find(
    id: Id,
    provenance: Provenance,
    signal: AbortSignal,
    client?: string,
  ): Promise<Hints | Refusal | undefined>
}

interface Remembered {
  readonly hints: Hints | undefined
  readonly untilMs: number
}

/** Answers of offset routes are small. */
const answerMaxBytes = 16_384

/** Under the words of the network first, then under the neutral ones. */
const offsetPaths = ['/ar-io/offsets/', '/gateway/offsets/']

/**
 * Asks other gateways where an item lies: by the headers of HEAD `/raw/{id}`, then by `/offsets/{id}`. Each gateway gets
 * few requests, and none for a while where it fails; answers are remembered for a few minutes.
 */
export class GatewayRoots implements RootLookup {
  readonly #client: UpstreamClient
  readonly #gateways: readonly { readonly url: string; readonly breaker: Breaker }[]
  readonly #remembered: BoundedMap<Id, Remembered>
  readonly #own: OwnName
  readonly #shares: CallShares

  /** `noteFailing` gets the number of gateways that have failed several times in a row, after each call. */
  constructor(
    private readonly options: RootLookupOptions,
    private readonly clock: Clock,
    private readonly noteFailing: (gateways: number) => void = () => undefined,
  ) {
    const { gateways, headMs, breaker, ownHosts, release } = options
    this.#remembered = new BoundedMap(options.rememberedMax)
    this.#client = new UpstreamClient({ headMs, stallMs: headMs, connectionsMax: 4 }, clock)
    this.#shares = new CallShares(breaker.perMinute, clock)
    this.#gateways = gateways.map((url) => ({ url, breaker: new Breaker(breaker, clock) }))
    const [host] = ownHosts
    this.#own = { release, ...(host === undefined ? {} : { host }) }
  }

  async find(
    id: Id,
    provenance: Provenance,
    signal: AbortSignal,
    client = '',
  ): Promise<Hints | Refusal | undefined> {
    if (isConfined(provenance, this.options)) return undefined
    const known = this.#remembered.get(id)
    if (known !== undefined && known.untilMs > this.clock.monotonic()) return known.hints
    const hasShare = this.#shares.may(client)
    let isCounted = false
    let isWanted = false
    let isAnswered = false
    let found: Hints | undefined
    const isLed = trailKey(provenance, this.options) !== ''
    for (const { url, breaker } of this.#gateways) {
      if (signal.aborted || passed(url, provenance)) continue
      isWanted = true
      // Where calls are plenty nobody is short of any.
      if ((!hasShare && breaker.isScarce) || !breaker.take()) continue
      if (!isCounted) this.#shares.called(client)
      isCounted = true
      const begunMs = this.clock.monotonic()
      const answer = await this.#ask(url, id, provenance, signal)
      if (signal.aborted) return undefined
      const isWell = answer !== 'away' && (answer !== 'refused' || isLed)
      // What is refused to a client's trail says nothing about the gateway, nor does one id that takes it longer than others.
      if (isWell || !breaker.wasWellSince(begunMs)) breaker.tell(isWell)
      this.noteFailing(this.#gateways.filter((one) => one.breaker.isFailing).length)
      if (answer === 'away' || answer === 'refused' || answer === 'unsure') continue
      isAnswered = true
      // A root with the offset is better than a root alone, which is better than nothing.
      if (answer?.itemOffset !== undefined) {
        found = answer
        break
      }
      found ??= answer
    }
    // An absence holds only for requests without a trail; a place holds for whoever requested it.
    if (isAnswered && (found !== undefined || !isLed)) this.#remember(id, found)
    return isWanted && !isAnswered ? unknownForNow() : found
  }

  async close(): Promise<void> {
    await this.#client.close()
  }

  async #ask(
    url: string,
    id: Id,
    provenance: Provenance,
    signal: AbortSignal,
  ): Promise<Hints | undefined | 'away' | 'refused' | 'unsure'> {
    const headers = { 'user-agent': this.options.release, ...trailHeaders(provenance, this.#own) }
    const head = await this.#client.request(url, { method: 'HEAD', path: `/raw/${id}`, headers }, signal)
    if (isRefusal(head)) return 'away'
    head.drop()
    if (head.statusCode === 429 || head.statusCode >= 500) return 'refused'
    if (isUnsureAbsence(head.statusCode, head.headers['retry-after'])) return 'unsure'
    const { hints } = readAnswerHeaders(head.headers)
    if (hints.rootId !== undefined && hints.itemOffset !== undefined) return hints
    for (const path of offsetPaths) {
      const answer = await this.#client.request(url, { method: 'GET', path: `${path}${id}`, headers }, signal)
      if (isRefusal(answer)) return 'away'
      const offsets = await readOffsets(answer)
      if (offsets !== undefined) return offsets
    }
    return hints.rootId === undefined ? undefined : hints
  }

  #remember(id: Id, hints: Hints | undefined): void {
    this.#remembered.set(id, { hints, untilMs: this.clock.monotonic() + this.options.rememberedMs })
  }
}

/** `{rootTxId, path?, rootOffset?, size?}` (the offsets route of gateways); undefined where it is anything else. */
async function readOffsets(answer: UpstreamAnswer): Promise<Hints | undefined> {
  if (answer.statusCode !== 200 || Number(answer.headers['content-length'] ?? 0) > answerMaxBytes) {
    answer.drop()
    return undefined
  }
  const gathered = new Gathered()
  try {
    for await (const piece of answer) {
      if (isRefusal(piece)) return undefined
      if (gathered.sizeBytes + piece.length > answerMaxBytes) return undefined
      gathered.add(piece)
    }
    return hintsOf(JSON.parse(textOfBytes(gathered.bytes())))
  } catch {
    // Cut off, or no JSON: it says nothing.
    return undefined
  }
}

function hintsOf(json: unknown): Hints | undefined {
  if (typeof json !== 'object' || json === null) return undefined
  const { rootTxId, path, rootOffset, size } = json as Readonly<Record<string, unknown>>
  const rootId = typeof rootTxId === 'string' ? parseId(rootTxId) : undefined
  if (rootId === undefined) return undefined
  const ids = Array.isArray(path)
    ? path.map((one: unknown) => (typeof one === 'string' ? parseId(one) : undefined))
    : []
  const isPath = ids.length > 0 && ids.length <= 32 && ids.every((one): one is Id => one !== undefined)
  return {
    rootId,
    ...(isPath ? { path: ids } : {}),
    ...(isCount(rootOffset) && isCount(size) ? { itemOffset: rootOffset, itemSize: size } : {}),
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}
