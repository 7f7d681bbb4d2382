import type { Meters } from '../../actor/meter.js'
import { storeStates } from '../../actor/store-meters.js'
import type { StoreMeters, StoreOperation, StoreOutcome } from '../objects/guarded-objects.js'
import type { ReadOutcome } from './tier-source.js'
import type { TierState } from './tier-state.js'
import type { PutOutcome } from './tier-writer.js'

/** What the object store does, for operators. */
export interface TierMeters {
  readonly store: StoreMeters
  put(outcome: PutOutcome, count: number): void
  read(outcome: ReadOutcome): void
  state(state: TierState['state'], waiting: number, known: number): void
}

/** The same in the program's table. */
export function tierMeters(meters: Meters): TierMeters {
  const asked = (operation: StoreOperation, outcome: StoreOutcome) =>
    meters.of('content_store_requests_total', { operation, outcome })
  const received = meters.of('content_store_bytes_total', { direction: 'in' })
  const sent = meters.of('content_store_bytes_total', { direction: 'out' })
  const states = storeStates.map((state) => meters.of('content_store_state', { state }))
  const waitingNow = meters.of('content_store_waiting')
  const knownNow = meters.of('content_store_known')
  return {
    store: {
      asked(operation, outcome, seconds) {
        asked(operation, outcome).add(1)
        meters.of('content_store_request_seconds', { operation }).add(seconds)
      },
      received: (bytes) => received.add(bytes),
      sent: (bytes) => sent.add(bytes),
    },
    put: (outcome, count) => meters.of('content_store_puts_total', { outcome }).add(count),
    read: (outcome) => meters.of('content_store_reads_total', { outcome }).add(1),
    state(state, waiting, known) {
      for (const [index, meter] of states.entries()) meter.set(storeStates[index] === state ? 1 : 0)
      waitingNow.set(waiting)
      knownNow.set(known)
    },
  }
}
