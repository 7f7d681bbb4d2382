import type { RecordChange } from '../../ledger/ledger-port.js'

/** Payments that were credited on a day, for the comparison with the card provider and the chains. Keys are `DAY|id`. */
export const cardDayKind = 'card-day'
export const topUpDayKind = 'topup-day'

/** The day of a time, in UTC: `2026-01-31`. */
export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

/** The record that lists something under the day of `nowMs` (ms since 1970, UTC). */
export function dayRecord(
  kind: typeof cardDayKind | typeof topUpDayKind,
  nowMs: number,
  id: string,
): RecordChange {
  return { kind, key: `${dayOf(nowMs)}|${id}`, value: '1' }
}
