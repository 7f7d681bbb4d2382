/**
 * An expected failure is a value with a reason, never an exception. `reason` decides the status (http/status.ts),
 * `fault` whose it is, `message` is what the client may read.
 */
export type Reason =
  | 'malformed'
  | 'unpaid'
  | 'unknown'
  | 'too-large'
  | 'unsatisfiable'
  | 'throttled'
  | 'blocked'
  | 'busy'
  | 'upstream'
  | 'forged'
  | 'late'
  /** A bug of this program. */
  | 'defect'

export interface Refusal {
  readonly refused: Reason
  readonly fault: 'client' | 'upstream' | 'self'
  readonly message: string
  /** The refusal is remembered from an earlier attempt; nothing was tried now. */
  readonly remembered?: true
  /** Milliseconds for which it will be remembered, unless something becomes known. */
  readonly rememberedMs?: number
  /** With `unknown` alone: somebody who may know it gave no answer, so nobody may keep this as an absence. */
  readonly isUnsure?: true
}

/** Makes a refusal. */
export function refuse(refused: Reason, fault: Refusal['fault'], message: string): Refusal {
  return { refused, fault, message }
}

/** Whether a result is a refusal, and not a value. */
export function isRefusal(value: unknown): value is Refusal {
  return typeof value === 'object' && value !== null && 'refused' in value
}
