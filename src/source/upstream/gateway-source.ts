import { type Clock, firstOver, type Timer } from '../../actor/clock.js'
import { Deadlines } from '../../actor/deadlines.js'
import { type AnySignal, LazySignal } from '../../actor/lazy-signal.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import { unknownEverywhere, weightier } from '../refusals.js'
import type { Found, Source, Wanted } from '../source.js'
import { GatewayHealth, type Trial } from './gateway-health.js'
import { RawClient, type RawFound, type RawOptions, wasHeard } from './raw-client.js'
import { SocketTurns } from './socket-turns.js'
import { isConfined, passed } from './trail.js'

export interface UpstreamGateway {
  /** Base URL. */
  readonly url: string
  /** Lower comes first; equals take turns. */
  readonly priority: number
  /** Whether its bytes may be called trusted. */
  readonly trusted: boolean
}

export interface GatewaySourceOptions extends RawOptions {
  readonly gateways: readonly UpstreamGateway[]
}

const name = 'trusted-gateways'

interface Listed {
  readonly gateway: UpstreamGateway
  readonly health: GatewayHealth
}

/** One request of several for the same content. */
class Attempt {
  /** Undefined while it waits for a socket: that says nothing about the gateway. */
  trial: Trial | undefined
  /** Ends this request alone; `ending` of the caller ends all of them, and the body of the one that won. */
  readonly signal = new LazySignal()
  readonly over: Promise<RawFound | Refusal>

  constructor(
    readonly listed: Listed,
    ask: (attempt: Attempt) => Promise<RawFound | Refusal>,
  ) {
    this.over = ask(this)
  }
}

/**
 * Other gateways, by requests for `/raw/{id}`: those of `TRUSTED_GATEWAYS_URLS`, trusted or not. Whether one is trusted is the
 * operator's setting, never its statement.
 */
export class GatewaySource implements Source {
  readonly name = name
  readonly #client: RawClient
  readonly #turns: SocketTurns
  readonly #patience: Deadlines
  readonly #byPriority: readonly (readonly Listed[])[]
  #turn = 0

  constructor(
    private readonly options: GatewaySourceOptions,
    private readonly clock: Clock,
  ) {
    this.#client = new RawClient(name, options, clock)
    this.#patience = new Deadlines(clock)
    this.#turns = new SocketTurns(options.connectionsMax, options.headMs, clock)
    const priorities = [...new Set(options.gateways.map(({ priority }) => priority))].sort((a, b) => a - b)
    this.#byPriority = priorities.map((priority) =>
      options.gateways
        .filter((one) => one.priority === priority)
        .map((gateway) => ({ gateway, health: new GatewayHealth(options.headMs, clock) })),
    )
  }

  /** What other gateways send says too little of what it was read out of. */
  mayHave(wanted: Wanted): boolean {
    return wanted.needsPlace !== true
  }

  /**
   * Asks one gateway after the other, in the operator's order; those that were silent lately come last. Where one takes longer
   * than usual the next one is queried beside it: two are under way at most. The first that opens wins, the other one is left.
   */
  async open(wanted: Wanted, ending: AnySignal): Promise<Found | Refusal> {
    const waiting = this.#candidates(wanted)
    const patientUntilMs = this.clock.monotonic() + this.options.headMs / 2
    /** One that was not silent lately does not have it. */
    let isAnswered = false
    // Strangers can make all gateways silent by ids that they are slow about: then they have half of the longest wait.
    const leftAtMs = (nowMs: number): number => (isAnswered ? nowMs : Math.max(nowMs, patientUntilMs))
    const running = new Set<Attempt>()
    let refusal: Refusal | undefined
    for (let atOnce = 1; ; ) {
      const next = running.size < atOnce && !ending.aborted ? waiting.shift() : undefined
      if (next !== undefined)
        running.add(new Attempt(next, (attempt) => this.#ask(attempt, leftAtMs, wanted, ending)))
      const [oldest] = running
      if (oldest === undefined) return refusal ?? unknownEverywhere()
      const mayHedge = atOnce === 1 && waiting.length > 0
      const patienceMs = mayHedge ? oldest.listed.health.patienceMs : undefined
      const first = await firstOver(running, this.#patience, patienceMs)
      if (first === undefined) {
        atOnce = 2
        continue
      }
      running.delete(first.attempt)
      if (!isRefusal(first.outcome)) {
        for (const attempt of running) this.#lose(attempt)
        return first.outcome
      }
      const isAbsent = first.outcome.refused === 'unknown' && first.outcome.isUnsure !== true
      isAnswered ||= first.attempt.trial?.limitMs === undefined && isAbsent
      refusal = weightier(refusal, first.outcome)
    }
  }

  async close(): Promise<void> {
    await this.#client.close()
  }

  async #ask(
    attempt: Attempt,
    leftAtMs: (nowMs: number) => number,
    wanted: Wanted,
    ending: AnySignal,
  ): Promise<RawFound | Refusal> {
    const { signal } = attempt
    const { gateway, health } = attempt.listed
    const forget = signal.follow(ending)
    const leaveInTime = (): void => {
      const nowMs = this.clock.monotonic()
      const leftMs = leftAtMs(nowMs) - nowMs
      if (leftMs <= 0) signal.abort()
      else limit = this.clock.after(leftMs, () => signal.abort())
    }
    let limit: Timer | undefined
    const takePlace = await this.#turns.wait(gateway.url, wanted.client, signal)
    if (isRefusal(takePlace)) {
      forget()
      return takePlace
    }
    const trial = health.begin()
    attempt.trial = trial
    if (trial.limitMs !== undefined) limit = this.clock.after(trial.limitMs, leaveInTime)
    const found = await this.#client.request(gateway.url, gateway.trusted, wanted, takePlace, signal, ending)
    limit?.cancel()
    if (!isRefusal(found)) found.whenOver(forget)
    else forget()
    if (wasHeard(found)) health.answered(trial)
    else if (!signal.aborted) health.silent(trial)
    return found
  }

  /** Another one was quicker: ends the request, and lets go of an answer that came in the same moment. */
  #lose({ listed, trial, signal, over }: Attempt): void {
    if (trial !== undefined) listed.health.lost(trial)
    signal.abort()
    void over.then((found) => (isRefusal(found) ? undefined : found.drop()))
  }

  #candidates({ provenance, avoid }: Wanted): Listed[] {
    if (isConfined(provenance, this.options)) return []
    this.#turn += 1
    const [candidates, behind]: [Listed[], Listed[]] = [[], []]
    for (const gateways of this.#byPriority) {
      for (let at = 0; at < gateways.length; at += 1) {
        const one = gateways[(at + this.#turn) % gateways.length]
        if (one === undefined || avoid.has(one.gateway.url) || passed(one.gateway.url, provenance)) continue
        if (one.health.isBehind) behind.push(one)
        else candidates.push(one)
      }
    }
    return [...candidates, ...behind]
  }
}
