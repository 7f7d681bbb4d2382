import type { Request } from '../http/exchange.js'

/** What one answer costs, known before a byte of it is read. */
export interface Fare {
  readonly request: Request
  /** Body bytes that would be sent; 0 for HEAD and 304. */
  readonly bytes: number
  /** For the offer; written by whoever made the content, so never trusted. */
  readonly contentType: string
  /** The resolved name with its undername, where the content is asked for by one. */
  readonly name?: string
}

/** Allowed. */
export interface Grant {
  /** Header lines for the answer (a payment's receipt), each with CRLF in front; '' where there are none. */
  readonly lines: string
  /** Called exactly once, when the answer is over: gives back what was taken for bytes that were not sent. */
  settle(bytesSent: number): void
}

/** Not allowed: the whole answer, but for request id and CORS lines. */
export interface Denial {
  readonly status: 400 | 402 | 429 | 503
  readonly contentType: string
  /** Each with CRLF in front. */
  readonly lines: string
  readonly body: string | Uint8Array
  /** In a few words, for the log: which limit, which fault of a payment. */
  readonly reason: string
}

/** May this answer go out? Asked once an answer, after the plan and before the first byte. */
export interface Admission {
  /** At once where shared memory decides; a promise where a payment has to be settled or Redis asked. Never rejects. */
  admit(fare: Fare): Grant | Denial | Promise<Grant | Denial>
}

export function isDenial(outcome: Grant | Denial): outcome is Denial {
  return 'status' in outcome
}

/** Buckets of tokens: 1 token is 1 KiB of egress. The one port behind which memory and Redis stand. */
export interface Credits {
  /**
   * Adds paid tokens to a client's bucket once per `payment` (any text that names the payment: payer and nonce), whoever asks
   * and however often. Durable when it resolves.
   */
  credit(address: string, payment: string, tokens: number): Promise<'credited' | 'known'>
}

/** A settled payment. */
export interface Paid {
  readonly tokens: number
  /** Names the payment: payer and nonce. */
  readonly payment: string
  /** Header lines with the receipt, each with CRLF in front. */
  readonly lines: string
}

/** Payments for egress, where the operator takes them. */
export interface Payments {
  /** The 402 with its offer. `fault` where a payment came and was no good. */
  demand(
    fare: Fare,
    fault?: { readonly error: string; readonly message: string; readonly payer?: string },
  ): Denial
  /** Undefined where the request carries no payment. Settles at most once per payment; never rejects. */
  pay(fare: Fare): Promise<Paid | Denial> | undefined
}
