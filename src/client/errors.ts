/** Why an operation of the client failed. Programs branch on `code`; people read `message` and `advice`. */
export type ErrorCode =
  /** The caller's signal fired. */
  | 'aborted'
  /** What the caller gave cannot be used. */
  | 'invalid-input'
  /** No signer, and the operation needs one. */
  | 'no-signer'
  /** Credits do not suffice. */
  | 'insufficient-credits'
  /** The free allowance is used up, or the item is above its size. */
  | 'free-tier-exhausted'
  /** The route takes USDC only, and no funding by x402 was requested. */
  | 'payment-required'
  /** The price is above the caller's cap. */
  | 'over-cap'
  /** This clock and the service's differ by so much that a payment signed here would not be valid there. */
  | 'wrong-clock'
  /** A payment was sent, and its outcome is unknown. */
  | 'payment-uncertain'
  | 'too-large'
  | 'forbidden'
  | 'not-found'
  /** The service refused the request for another reason. */
  | 'rejected'
  | 'rate-limited'
  /** No answer, or a failure of the service. */
  | 'unavailable'
  /** The service made a false statement: a receipt of another key, a wrong id, bytes of something else. */
  | 'untrue'
  /** The service answered in a form that is not its interface. */
  | 'malformed-answer'
  /** The content was not the same when it was read again. */
  | 'changed-while-read'
  /** Password or key do not open what is encrypted. */
  | 'wrong-key'

export interface ErrorDetails {
  readonly status?: number | undefined
  readonly id?: string | undefined
  readonly cause?: unknown
}

/** The one class of errors that the client's operations reject with. */
export class ClientError extends Error {
  override readonly name = 'ClientError'
  /** HTTP status, where an answer was the reason. */
  readonly status: number | undefined
  /** The item that it is about, where there is one. */
  readonly id: string | undefined

  constructor(
    readonly code: ErrorCode,
    message: string,
    /** What the caller can do about it. */
    readonly advice: string,
    details: ErrorDetails = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.status = details.status
    this.id = details.id
  }
}

/** What was thrown, as one of ours: a bug is thrown on as it is. */
export function asClientError(error: unknown): ClientError {
  if (error instanceof ClientError) return error
  throw error
}
