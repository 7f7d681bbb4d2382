import { Backoff, type BackoffOptions } from '../../actor/backoff.js'
import { type Clock, pause, type Timer } from '../../actor/clock.js'
import { type AnySignal, signalOf } from '../../actor/lazy-signal.js'
import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { unknownEverywhere, unknownForNow, weightier } from '../refusals.js'
import type { Found, Source, Wanted } from '../source.js'
import { PeerPlaces } from './peer-places.js'
import { PeerSilence } from './peer-silence.js'
import { PeerWeights } from './peer-weights.js'
import { RawClient, type RawFound, type RawOptions, wasAnswered, wasHeard } from './raw-client.js'
import { placeHeldFirst } from './take-place.js'
import { hintsKey, isConfined, passed, trailKey } from './trail.js'

export interface PeerOptions extends RawOptions {
  /** Base URLs. */
  readonly peers: readonly string[]
  /** Requests at most for one payload. */
  readonly candidatesMax: number
  /** How many of them are those that every gateway chooses for the same id: they are the likeliest to have it. */
  readonly homesMax: number
  /** Without an answer for so long one more gets the request, too. */
  readonly hedgeMs: number
  readonly hedgedMax: number
  /** Answers under way from one peer, shared out as `PeerPlaces` does. */
  readonly concurrentMax: number
  /** What an answer or a failure changes of a weight from 1 to 100. */
  readonly weightDelta: number
  /** When a peer that failed gets no requests. */
  readonly rest: BackoffOptions
}

const name = 'ar-io-network'
const weight = { min: 1, max: 100, start: 50 }

/** In this time a weight below the first one comes half of the way back: a peer that failed once gets requests again some day. */
const recoveryMs = 15 * 60_000

/** Share of the youngest answer in the average time to a head: the last twenty answers or so count. */
const youngest = 0.1

interface Peer {
  readonly url: string
  readonly rest: Backoff
  readonly silence: PeerSilence
  /** In the operator's list. */
  readonly index: number
  weight: number
  /** When the weight was set (monotonic milliseconds). */
  weighedMs: number
  readonly places: PeerPlaces
}

/** The answer of a peer to a request: it has it, or does not know it. */
type PeerAnswer = 'found' | 'unknown'

/**
 * What the peers made of one request. What none of them answers counts against none: a stranger's id may take all of them long,
 * or fail at all of them. That one peer does not know an id says no more: another one may search for it longer. So who is slow,
 * or answers with an error, is the worse only for what another peer had; who hangs up, for what another peer answered.
 */
class Verdicts {
  readonly #answers = new Set<PeerAnswer>()
  #failures: { readonly after: PeerAnswer; readonly count: () => void }[] = []

  /** `onUnknown`: called when the first peer does not know it. */
  constructor(private readonly onUnknown: () => void) {}

  get isAnswered(): boolean {
    return this.#answers.size > 0
  }

  /** What is known of the id, where nobody has opened it. A peer that nobody vouches for outweighs no other one's word. */
  refusalOf(refusal: Refusal): Refusal {
    const isDenied = this.#answers.has('unknown') && !this.#answers.has('found')
    const isFailure = refusal.refused === 'late' || refusal.refused === 'upstream'
    return isDenied && isFailure ? unknownForNow() : refusal
  }

  answered(answer: PeerAnswer): void {
    const isFirst = this.#answers.size === 0
    this.#answers.add(answer)
    if (answer === 'found') this.#answers.add('unknown')
    else if (isFirst) this.onUnknown()
    const due = this.#failures.filter(({ after }) => this.#answers.has(after))
    this.#failures = this.#failures.filter((one) => !due.includes(one))
    for (const { count } of due) count()
  }

  /** `count` is called once another peer has answered so, or better. */
  failed(after: PeerAnswer, count: () => void): void {
    if (this.#answers.has(after)) count()
    else this.#failures.push({ after, count })
  }
}

/**
 * Gateways of the network that nobody here vouches for. They must say themselves that they verified or trust what they send;
 * it is called untrusted all the same, until it is proven. Those that answer, and answer quickly, get more requests.
 */
export class NetworkPeers implements Source {
  readonly name = name
  readonly #client: RawClient
  readonly #peers: readonly Peer[]
  /** Due while no peer has answered the last requests. */
  readonly #silence: Backoff
  #averageMs: number | undefined
  #changes = 0

  /** Weights are written to `board` as well. `random` gives numbers from 0 to below 1. */
  constructor(
    private readonly options: PeerOptions,
    private readonly clock: Clock,
    private readonly board = new PeerWeights(
      new SharedArrayBuffer(PeerWeights.bytesFor(options.peers.length)),
    ),
    private readonly random: () => number = Math.random,
  ) {
    this.#client = new RawClient(name, options, clock)
    this.#peers = options.peers.map((url, index) => {
      const probe = (): Promise<boolean> => this.#client.answers(url)
      return {
        url,
        rest: new Backoff(options.rest, clock),
        silence: new PeerSilence(options.headMs, options.rest, clock, probe),
        index,
        weight: weight.start,
        weighedMs: clock.monotonic(),
        places: new PeerPlaces(Math.min(options.concurrentMax, options.connectionsMax)),
      }
    })
    for (const peer of this.#peers) this.#weigh(peer, weight.start)
    this.#silence = new Backoff(options.rest, clock)
  }

  /** Weights of the peers, for whoever wants to see them. */
  get weights(): ReadonlyMap<string, number> {
    return new Map(this.#peers.map(({ url, weight }) => [url, weight]))
  }

  /** Weights that were set since the start. */
  get changes(): number {
    return this.#changes
  }

  /** The weights by address, for the next process. */
  kept(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#peers.map((peer) => [peer.url, Math.round(this.#recovered(peer))]))
  }

  /** Takes over what an earlier process kept. Whatever is malformed, and peers that are not in the list, are passed over. */
  takeOver(kept: unknown): void {
    if (typeof kept !== 'object' || kept === null) return
    const weights = kept as Readonly<Record<string, unknown>>
    for (const peer of this.#peers) {
      const known = Object.hasOwn(weights, peer.url) ? weights[peer.url] : undefined
      if (typeof known === 'number' && known >= weight.min && known <= weight.max) this.#weigh(peer, known)
    }
  }

  /** What other gateways send says too little of what it was read out of. */
  mayHave(wanted: Wanted): boolean {
    return wanted.needsPlace !== true
  }

  /**
   * Asks one peer; when it is silent for `hedgeMs`, or refuses, the next one. The first that opens wins, the others are left.
   * While no peer answers at all, they are left together after half of the longest wait for a head. So are those that are silent
   * still when another one does not know it, from that moment on.
   */
  async open(wanted: Wanted, ending: AnySignal): Promise<Found | Refusal> {
    const signal = signalOf(ending)
    const eligible = this.#eligible(wanted)
    if (eligible.length === 0) return unknownEverywhere()
    const waiting = this.#candidates(wanted, eligible)
    if (waiting.length === 0) return refuse('busy', 'self', 'no peer may get another request now')
    const begunMs = this.clock.monotonic()
    const leaving = new AbortController()
    let limit: Timer | undefined
    const leaveSoon = (): void => {
      limit ??= this.clock.after(this.options.headMs / 2, () => leaving.abort())
    }
    if (this.#silence.isDue) leaveSoon()
    const verdicts = new Verdicts(leaveSoon)
    const found = await this.#first(waiting, wanted, AbortSignal.any([signal, leaving.signal]), verdicts)
    limit?.cancel()
    if (verdicts.isAnswered) this.#silence.well()
    else if (!signal.aborted && !this.#silence.wasWellSince(begunMs)) this.#silence.failed()
    return isRefusal(found) && !signal.aborted ? verdicts.refusalOf(found) : found
  }

  async #first(
    waiting: Peer[],
    wanted: Wanted,
    signal: AbortSignal,
    verdicts: Verdicts,
  ): Promise<Found | Refusal> {
    const running = new Map<Promise<RawFound | Refusal>, AbortController>()
    let refusal: Refusal | undefined
    while (!signal.aborted && (waiting.length > 0 || running.size > 0)) {
      const peer = running.size < this.options.hedgedMax ? waiting.shift() : undefined
      if (peer !== undefined) {
        const attempt = new AbortController()
        running.set(this.#ask(peer, wanted, signal, attempt, verdicts), attempt)
      }
      const patience = new AbortController()
      const mayHedge = waiting.length > 0 && running.size < this.options.hedgedMax
      const answers = [...running.keys()].map(async (ask) => ({ ask, found: await ask }))
      const first = await Promise.race([
        ...answers,
        ...(mayHedge ? [pause(this.options.hedgeMs, patience.signal).then(() => undefined)] : []),
      ])
      patience.abort()
      if (first === undefined) continue
      running.delete(first.ask)
      // Also where one says that the window lies outside: it may have something else.
      if (isRefusal(first.found)) {
        refusal = weightier(refusal, first.found)
        continue
      }
      for (const attempt of running.values()) attempt.abort()
      return first.found
    }
    for (const attempt of running.values()) attempt.abort()
    return refusal ?? unknownEverywhere()
  }

  async close(): Promise<void> {
    await this.#client.close()
  }

  async #ask(
    peer: Peer,
    wanted: Wanted,
    ending: AbortSignal,
    attempt: AbortController,
    verdicts: Verdicts,
  ): Promise<RawFound | Refusal> {
    const { client = '' } = wanted
    const place = peer.places.take(client, () => attempt.abort())
    const takePlace = placeHeldFirst(place.leave, () => peer.places.force(client))
    const begunMs = this.clock.monotonic()
    const signal = AbortSignal.any([ending, attempt.signal])
    const found = await this.#client.request(peer.url, false, wanted, takePlace, signal)
    place.headCame()
    if (wasHeard(found)) peer.silence.heard()
    else if (isRefusal(found) && found.refused === 'late') peer.silence.unheard(begunMs)
    if (isRefusal(found)) {
      // Who does not have it is as good as any; who was left for another did nothing wrong.
      if (found.refused === 'unknown' || found.refused === 'unsatisfiable') {
        peer.rest.well()
        verdicts.answered('unknown')
      } else if (!signal.aborted && found.fault !== 'self' && !(wasAnswered(found) && this.#isLed(wanted))) {
        const isThere = found.refused === 'late' || wasAnswered(found)
        verdicts.failed(isThere ? 'found' : 'unknown', () => this.#fail(peer, begunMs))
      }
      return found
    }
    found.whenOver((isWell) => {
      if (!isWell && !signal.aborted) this.#worsen(peer)
    })
    this.#praise(peer, this.clock.monotonic() - begunMs)
    verdicts.answered('found')
    const doubt = doubtOf(found, wanted)
    if (doubt === undefined) return found
    found.drop()
    return doubt
  }

  /** The request carries words or a range of a client's: what is answered to those says nothing about the peer. */
  #isLed({ provenance, hints, window }: Wanted): boolean {
    return window !== undefined || hintsKey(hints) !== '' || trailKey(provenance, this.options) !== ''
  }

  /** Peers that may get this request at all. */
  #eligible({ provenance, avoid }: Wanted): Peer[] {
    if (isConfined(provenance, this.options)) return []
    return this.#peers.filter(({ url }) => !avoid.has(url) && !passed(url, provenance))
  }

  /** Peers that failed lately, and mute ones, are left out, except where there are no others. */
  #candidates({ id, client = '' }: Wanted, eligible: readonly Peer[]): Peer[] {
    const { homesMax, candidatesMax } = this.options
    for (const peer of eligible) {
      if (peer.weight < weight.start) this.#weigh(peer, this.#recovered(peer), 0)
      peer.silence.probeAgain()
    }
    const free = eligible.filter(({ places }) => places.hasRoom(client))
    const well = free.filter(({ rest, silence }) => !silence.isMute && !(rest.isDue && rest.isOn))
    const able = well.length > 0 ? well : free
    const chosen = able
      .map((peer) => ({ peer, nearness: nearness(id, peer.url) }))
      .sort((one, other) => other.nearness - one.nearness)
      .slice(0, homesMax)
      .map(({ peer }) => peer)
    const rest = able.filter((peer) => !chosen.includes(peer))
    while (chosen.length < candidatesMax && rest.length > 0) {
      let at = this.random() * rest.reduce((sum, peer) => sum + peer.weight, 0)
      const index = rest.findIndex((peer) => {
        at -= peer.weight
        return at < 0
      })
      chosen.push(...rest.splice(Math.max(0, index), 1))
    }
    return chosen.sort((one, other) => other.weight - one.weight)
  }

  #praise(peer: Peer, tookMs: number): void {
    const { weightDelta } = this.options
    const average = this.#averageMs ?? tookMs
    this.#averageMs = average + (tookMs - average) * youngest
    const gain = tookMs < average ? 2 * weightDelta : weightDelta
    this.#weigh(peer, Math.min(weight.max, peer.weight + gain))
    peer.rest.well()
  }

  #weigh(peer: Peer, weight: number, changes = 1): void {
    peer.weight = weight
    peer.weighedMs = this.clock.monotonic()
    this.#changes += changes
    this.board.set(peer.index, weight)
  }

  /** The weight of now: what a failure took comes back with time. */
  #recovered(peer: Peer): number {
    const lacking = weight.start - peer.weight
    if (lacking <= 0) return peer.weight
    return weight.start - lacking * 0.5 ** ((this.clock.monotonic() - peer.weighedMs) / recoveryMs)
  }

  #fail(peer: Peer, begunMs: number): void {
    if (peer.rest.wasWellSince(begunMs)) return
    this.#worsen(peer)
    peer.rest.failed()
  }

  #worsen(peer: Peer): void {
    this.#weigh(peer, Math.max(weight.min, peer.weight - this.options.weightDelta))
  }
}

/** Why an answer is not taken before a byte of it is read. Only a proven digest on record stands in for the peer's own word. */
function doubtOf(found: RawFound, { attributes }: Wanted): Refusal | undefined {
  const digest = attributes?.verified === true ? attributes.digest : undefined
  if (digest === undefined) {
    return found.vouched
      ? undefined
      : refuse('upstream', 'upstream', `${found.origin} does not say that it has proven what it sends`)
  }
  if (found.declaredDigest === undefined || Buffer.compare(found.declaredDigest, digest) === 0)
    return undefined
  return refuse('forged', 'upstream', `${found.origin} has other bytes than the proven ones`)
}

/**
 * Weight of a peer for an id (rendezvous hashing): the peers with the highest weights are preferred. Gateways with the same peers
 * prefer the same ones, and nearly the same after one joins or leaves. FNV-1a with a final mix; its strength does not matter.
 */
function nearness(id: Id, url: string): number {
  let hash = 0x811c9dc5
  for (const text of [id, url]) {
    for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  }
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  hash = Math.imul(hash ^ (hash >>> 12), 0x297a2d39)
  return (hash ^ (hash >>> 15)) >>> 0
}
