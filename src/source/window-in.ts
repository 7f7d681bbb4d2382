import { type Refusal, refuse } from '../format/refusal.js'
import type { Window } from './source-messages.js'

/** The end of a window that goes on to the end of a payload of unknown size. */
export const openEnd = Number.MAX_SAFE_INTEGER

/** The window in a payload of so many bytes; `unsatisfiable` where it lies outside. Pure. */
export function windowIn(window: Window, sizeBytes: number): Window | Refusal {
  const { start, end, mayEndEarlier } = window
  if (end < sizeBytes) return mayEndEarlier === true ? { start, end } : window
  if (mayEndEarlier === true && start < sizeBytes) return { start, end: sizeBytes - 1 }
  return refuse('unsatisfiable', 'client', 'the range is outside of the content')
}
