import type { Meter, Meters } from '../../actor/meter.js'
import { storeStates } from '../../actor/store-meters.js'
import type { StoreMeters } from '../objects/guarded-objects.js'
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
  const cells = new Map<string, Meter>()
  /** Looked up by its labels once. */
  const cell = (name: string, labels: Readonly<Record<string, string>>): Meter => {
    const key = `${name} ${Object.values(labels).join(' ')}`
    const known = cells.get(key) ?? meters.of(name, labels)
    cells.set(key, known)
    return known
  }
  const received = meters.of('content_store_bytes_total', { direction: 'in' })
  const sent = meters.of('content_store_bytes_total', { direction: 'out' })
  const states = storeStates.map((state) => meters.of('content_store_state', { state }))
  const waitingNow = meters.of('content_store_waiting')
  const knownNow = meters.of('content_store_known')
  return {
    store: {
      ended(operation, outcome, seconds) {
        cell('content_store_requests_total', { operation, outcome }).add(1)
        cell('content_store_request_seconds', { operation }).add(seconds)
      },
      received: (bytes) => received.add(bytes),
      sent: (bytes) => sent.add(bytes),
    },
    put: (outcome, count) => cell('content_store_puts_total', { outcome }).add(count),
    read: (outcome) => cell('content_store_reads_total', { outcome }).add(1),
    state(state, waiting, known) {
      for (const [index, meter] of states.entries()) meter.set(storeStates[index] === state ? 1 : 0)
      waitingNow.set(waiting)
      knownNow.set(known)
    },
  }
}
