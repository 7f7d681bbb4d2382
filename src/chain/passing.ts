import type { Refusal } from '../format/refusal.js'

/** A refusal for a failure that may be over soon: a connection lost, a proxy that answers 502. */
export interface PassingRefusal extends Refusal {
  readonly passing: true
}

/** Marks a refusal as a failure that may be over soon. */
export function passing(refusal: Refusal): PassingRefusal {
  return { ...refusal, passing: true }
}

/** Whether the failure may be over soon. */
export function isPassing(refusal: Refusal): boolean {
  return 'passing' in refusal
}

/** A refusal for what a node has, but in no block yet: it will be there soon. */
export interface PendingRefusal extends Refusal {
  readonly isPending: true
}

/** Marks a refusal as one for what is in no block yet. */
export function pending(refusal: Refusal): PendingRefusal {
  return { ...refusal, isPending: true }
}

/** Whether what was refused is in no block yet. */
export function isPending(refusal: Refusal): boolean {
  return 'isPending' in refusal
}

/** A refusal for a chunk that does not prove: its sender is wrong, or the place where we expect it. */
export interface UnprovenRefusal extends Refusal {
  readonly isUnproven: true
}

/** Marks a refusal as one for a chunk that does not prove. */
export function unproven(refusal: Refusal): UnprovenRefusal {
  return { ...refusal, isUnproven: true }
}

/** Whether the chunk that came does not prove. */
export function isUnproven(refusal: Refusal): boolean {
  return 'isUnproven' in refusal
}
