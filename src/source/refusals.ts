import { type Reason, type Refusal, refuse } from '../format/refusal.js'

/**
 * The lower, the more it says. A source that failed may have had the bytes, so its word outweighs any number of
 * sources that are sure to have nothing: a failure must never become a 404 that is kept (`unknownForNow`).
 */
const weight: Partial<Record<Reason, number>> = {
  defect: -1,
  unsatisfiable: 0,
  forged: 1,
  upstream: 2,
  late: 3,
  busy: 4,
  unknown: 9,
}

function weightOf({ refused, isUnsure }: Refusal): number {
  return isUnsure === true ? 8 : (weight[refused] ?? 5)
}

/** The refusal to answer with after two sources refused. */
export function weightier(one: Refusal | undefined, other: Refusal): Refusal {
  if (one === undefined) return other
  return weightOf(other) < weightOf(one) ? other : one
}

/** No source that got the request lately had it; for `rememberedMs` none gets it again. */
export function stillUnknown(rememberedMs: number): Refusal {
  return {
    ...refuse('unknown', 'client', 'Not found; it was looked for a short time ago'),
    remembered: true,
    rememberedMs,
  }
}

/** These very bytes must not be served. */
export function forbiddenBytes(): Refusal {
  return refuse('blocked', 'client', 'the content policy of this node forbids these bytes')
}

/** A mistake of the program: what it was stands in the log. */
export function defect(): Refusal {
  return refuse('defect', 'self', 'Internal server error')
}

/** No source that got the request has it. */
export function unknownEverywhere(): Refusal {
  return refuse('unknown', 'client', 'Not found')
}

/**
 * Nobody who gave an answer has it, and somebody who may know it gave none. Answered 404, because for most ids that is so, and
 * balancers take a gateway with many 5xx away from everybody. No cache may keep it.
 */
export function unknownForNow(): Refusal {
  return { ...refuse('unknown', 'client', 'Not found now: try again'), isUnsure: true }
}

/** A source says that it has more than this machine could take. */
export function tooMuchAnnounced(): Refusal {
  return refuse('upstream', 'upstream', 'the source announced more bytes than there is room for')
}
