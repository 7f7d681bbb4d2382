/**
 * Whether an answer of a gateway says that it does not know an id for now, and not that nobody has it: 404 or 410 with
 * Retry-After, as Sluice sends where it could not look everywhere (`unknownForNow`). Whoever reads it keeps no absence.
 * `retryAfter`: the header line's value; undefined or null where there is none.
 */
export function isUnsureAbsence(status: number, retryAfter: unknown): boolean {
  return (status === 404 || status === 410) && (retryAfter ?? undefined) !== undefined
}
