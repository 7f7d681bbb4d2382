/** Why a request by `fetch` had no answer: it says "fetch failed" of everything, and keeps the reason in `cause`. */
export function whyUnreachable(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.name === 'TimeoutError' || error.name === 'AbortError') return 'no answer within the time limit'
  const { cause } = error
  if (!(cause instanceof Error)) return error.message
  // Where a name has several addresses and none answers, the reasons are a list and the message is empty.
  const first: unknown = cause instanceof AggregateError ? cause.errors[0] : undefined
  return first instanceof Error ? first.message : cause.message
}
