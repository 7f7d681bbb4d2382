import type { Meter, Meters } from '../actor/meter.js'
import { isRefusal } from '../format/refusal.js'
import { isResolved, type Resolver, type Verdict } from './protocol.js'

/** What a thread counts about names. */
export class NameMeters {
  readonly #hits: Meter
  readonly #misses: Meter
  readonly #ms: Meter
  readonly #entries: Meter
  readonly #asked = new Map<string, Meter>()

  constructor(meters: Meters) {
    this.#hits = meters.of('arns_cache_hit_total')
    this.#misses = meters.of('arns_cache_miss_total')
    this.#ms = meters.of('arns_resolution_time_ms')
    this.#entries = meters.of('arns_base_name_cache_entries')
    for (const resolver of ['local', 'gateway', 'on-demand']) {
      for (const outcome of ['found', 'absent', 'blocked', 'failed']) {
        const meter = meters.of('arns_resolution_resolver_count', { resolver, outcome })
        this.#asked.set(`${resolver} ${outcome}`, meter)
      }
    }
  }

  hit(): void {
    this.#hits.add(1)
  }

  miss(): void {
    this.#misses.add(1)
  }

  took(ms: number): void {
    this.#ms.add(ms)
  }

  holds(names: number): void {
    this.#entries.set(names)
  }

  asked(resolver: Resolver['label'], verdict: Verdict): void {
    const outcome = isResolved(verdict) ? 'found' : isRefusal(verdict) ? 'failed' : verdict
    this.#asked.get(`${resolver} ${outcome}`)?.add(1)
  }
}
