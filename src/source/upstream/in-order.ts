import { isRefusal, type Refusal } from '../../format/refusal.js'
import { unknownEverywhere, weightier } from '../refusals.js'
import type { Found, Source, Wanted } from '../source.js'

/**
 * Asks sources one after the other; the first that opens wins. Where none does, the weightiest refusal is given: `unknown`
 * only where every source denies the id.
 */
export function inOrder(name: string, sources: readonly Source[]): Source {
  return {
    name,
    async open(wanted: Wanted, signal: AbortSignal): Promise<Found | Refusal> {
      let refusal: Refusal | undefined
      for (const source of sources) {
        if (signal.aborted) break
        const found = await source.open(wanted, signal)
        if (!isRefusal(found)) return found
        refusal = weightier(refusal, found)
        // The window lies outside the payload: no other source can change that.
        if (found.refused === 'unsatisfiable') break
      }
      return refusal ?? unknownEverywhere()
    },
  }
}
