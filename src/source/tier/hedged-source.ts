import { pause } from '../../actor/clock.js'
import type { AnySignal } from '../../actor/lazy-signal.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import { weightier } from '../refusals.js'
import type { Found, Source, Wanted } from '../source.js'
import { cancelBody } from '../transfer/cancel-body.js'

/**
 * Requests from `first`, and from `rest` when `first` refuses or is silent for `hedgeMs`. What opens first is taken. `first` is
 * not stopped then: its breaker counts that it does not answer in its own time.
 */
export function hedged(first: Source, rest: Source, hedgeMs: number): Source {
  return {
    name: rest.name,
    async open(wanted: Wanted, ending: AnySignal): Promise<Found | Refusal> {
      const asking = first.open(wanted, ending)
      const patience = new AbortController()
      const early = await Promise.race([asking, pause(hedgeMs, patience.signal).then(() => undefined)])
      patience.abort()
      if (early !== undefined) return isRefusal(early) ? orRest(early, rest, wanted, ending) : early
      const other = rest.open(wanted, ending)
      const winner = await Promise.race([
        asking.then((found) => ({ found, loser: other })),
        other.then((found) => ({ found, loser: asking })),
      ])
      if (!isRefusal(winner.found)) {
        void winner.loser.then((found) => (isRefusal(found) ? undefined : cancelBody(found.body)))
        return winner.found
      }
      const found = await winner.loser
      return isRefusal(found) ? weightier(winner.found, found) : found
    },
  }
}

async function orRest(
  refusal: Refusal,
  rest: Source,
  wanted: Wanted,
  ending: AnySignal,
): Promise<Found | Refusal> {
  if (ending.aborted || refusal.refused === 'unsatisfiable') return refusal
  const found = await rest.open(wanted, ending)
  return isRefusal(found) ? weightier(refusal, found) : found
}
