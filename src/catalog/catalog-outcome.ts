import { type Refusal, refuse } from '../format/refusal.js'

/** `refused`: by the disk. `damaged`: a page that is needed was overwritten. */
export type WriteOutcome = 'written' | 'refused' | 'damaged'

const unwritten = refuse('busy', 'self', 'the disk of the catalog is full or fails')
const unreadable = refuse('busy', 'self', 'a page of the catalog is damaged')

/** The reply to a change that was not written. */
export function unwrittenReply(outcome: Exclude<WriteOutcome, 'written'>): Refusal {
  return outcome === 'damaged' ? unreadable : unwritten
}
