import type { AnySignal } from '../../actor/lazy-signal.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import { unknownEverywhere, weightier } from '../refusals.js'
import type { Found, Source, Wanted } from '../source.js'

/** A source that denies the id at once needs no promise. */
function mayHave(source: Source, wanted: Wanted): boolean {
  return source.mayHave === undefined || source.mayHave(wanted)
}

/**
 * Asks sources one after the other; the first that opens wins. Where none does, the weightiest refusal is given: `unknown`
 * only where every source denies the id.
 */
export function inOrder(name: string, sources: readonly Source[]): Source {
  const open = async (wanted: Wanted, ending: AnySignal): Promise<Found | Refusal> => {
    let refusal: Refusal | undefined
    for (const source of sources) {
      if (ending.aborted) break
      if (!mayHave(source, wanted)) continue
      const found = await source.open(wanted, ending)
      if (!isRefusal(found)) return found
      refusal = weightier(refusal, found)
      // The window lies outside the payload: no other source can change that.
      if (found.refused === 'unsatisfiable') break
    }
    return refusal ?? unknownEverywhere()
  }
  return {
    name,
    mayHave: (wanted) => sources.some((source) => mayHave(source, wanted)),
    open,
  }
}
