import type { Clock } from '../../actor/clock.js'
import type { AnySignal } from '../../actor/lazy-signal.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import { unknownEverywhere, weightier } from '../refusals.js'
import type { Found, Source, Wanted } from '../source.js'
import { RawClient, type RawOptions } from './raw-client.js'
import { isConfined, passed } from './trail.js'

export interface TrustedGateway {
  /** Base URL. */
  readonly url: string
  /** Lower comes first; equals take turns. */
  readonly priority: number
  /** Whether its bytes may be called trusted. */
  readonly trusted: boolean
}

export interface TrustedGatewaysOptions extends RawOptions {
  readonly gateways: readonly TrustedGateway[]
}

const name = 'trusted-gateways'

/** Other gateways, by requests for `/raw/{id}`. Whether they are trusted is the operator's setting, never their statement. */
export class TrustedGateways implements Source {
  readonly name = name
  readonly #client: RawClient
  readonly #byPriority: readonly (readonly TrustedGateway[])[]
  #turn = 0

  constructor(
    private readonly options: TrustedGatewaysOptions,
    clock: Clock,
  ) {
    this.#client = new RawClient(name, options, clock)
    const priorities = [...new Set(options.gateways.map(({ priority }) => priority))].sort((a, b) => a - b)
    this.#byPriority = priorities.map((priority) =>
      options.gateways.filter((one) => one.priority === priority),
    )
  }

  /** What other gateways send says too little of what it was read out of. */
  mayHave(wanted: Wanted): boolean {
    return wanted.needsPlace !== true
  }

  async open(wanted: Wanted, signal: AnySignal): Promise<Found | Refusal> {
    let refusal: Refusal | undefined
    for (const { url, trusted } of this.#candidates(wanted)) {
      if (signal.aborted) break
      const found = await this.#client.request(url, trusted, wanted, signal)
      if (!isRefusal(found)) return found
      refusal = weightier(refusal, found)
    }
    return refusal ?? unknownEverywhere()
  }

  async close(): Promise<void> {
    await this.#client.close()
  }

  #candidates({ provenance, avoid }: Wanted): TrustedGateway[] {
    if (isConfined(provenance, this.options)) return []
    this.#turn += 1
    const candidates: TrustedGateway[] = []
    for (const gateways of this.#byPriority) {
      for (let at = 0; at < gateways.length; at += 1) {
        const one = gateways[(at + this.#turn) % gateways.length]
        if (one !== undefined && !avoid.has(one.url) && !passed(one.url, provenance)) candidates.push(one)
      }
    }
    return candidates
  }
}
