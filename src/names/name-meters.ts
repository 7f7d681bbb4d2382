import type { Meter, Meters } from '../actor/meter.js'
import { isRefusal } from '../format/refusal.js'
import { isResolved, type Resolver, type ResolverVerdict } from './names-port.js'

/** Metrics of names. */
export class NameMeters {
  readonly #hits: Meter
  readonly #misses: Meter
  readonly #seconds: Meter
  readonly #entries: Meter
  readonly #answers = new Map<string, Meter>()

  constructor(meters: Meters) {
    this.#hits = meters.of('arns_cache_hit_total')
    this.#misses = meters.of('arns_cache_miss_total')
    this.#seconds = meters.of('arns_resolution_duration_seconds')
    this.#entries = meters.of('arns_base_name_cache_entries')
    for (const resolver of ['local', 'gateway', 'on-demand']) {
      for (const outcome of ['found', 'absent', 'blocked', 'failed']) {
        const meter = meters.of('arns_resolver_answers_total', { resolver, outcome })
        this.#answers.set(`${resolver} ${outcome}`, meter)
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
    this.#seconds.add(ms / 1000)
  }

  holds(names: number): void {
    this.#entries.set(names)
  }

  answered(resolver: Resolver['label'], verdict: ResolverVerdict): void {
    const outcome = isResolved(verdict) ? 'found' : isRefusal(verdict) ? 'failed' : verdict
    this.#answers.get(`${resolver} ${outcome}`)?.add(1)
  }
}
