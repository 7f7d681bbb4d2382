import type { Reason } from '../format/refusal.js'

/** The status that a refusal is answered with (RFC 9110 section 15, RFC 6585 for 429, RFC 7725 for 451). */
export const statusOf: Readonly<Record<Reason, number>> = {
  malformed: 400,
  unpaid: 402,
  unknown: 404,
  'too-large': 413,
  unsatisfiable: 416,
  throttled: 429,
  blocked: 451,
  upstream: 502,
  forged: 502,
  busy: 503,
  late: 504,
}
