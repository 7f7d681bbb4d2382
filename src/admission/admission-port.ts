import type { Cell } from '../actor/shared.js'
import type { Request } from '../http/exchange.js'
import type { AnswerPrice } from '../http/response-cache.js'

/** Kind of the request: label of the meters. `data`: content by id or name; `chunk`: by weave offset; `index`: files of bands. */
export const domains = ['data', 'chunk', 'index'] as const
export type Domain = (typeof domains)[number]

/** What one answer costs, known before a byte of it is read. */
export interface Charge {
  readonly request: Request
  /** Body bytes that would be sent; 0 for HEAD and 304. */
  readonly bytes: number
  /** For the offer; written by whoever made the content, so never trusted. */
  readonly contentType: string
  /** The resolved name with its undername, where the content is requested by name. */
  readonly name?: string
  /** `data` where it is absent. */
  readonly domain?: Domain
  /** True where `takeFirst` took the first token of this request already. */
  readonly firstTokenTaken?: boolean
}

/** Allowed. */
export interface Grant {
  /** Header lines for the answer (a payment's receipt), each with CRLF in front; '' where there are none. */
  readonly lines: string
  /** Called exactly once, when the answer is over: gives back what was taken for bytes that were not sent. */
  returnUnsent(bytesSent: number): void
}

/** Not allowed: the complete answer without request id and CORS lines. */
export interface Denial {
  readonly status: 400 | 402 | 409 | 429 | 503
  readonly contentType: string
  /** Each with CRLF in front. */
  readonly lines: string
  readonly body: string | Uint8Array
  /** In a few words, for the log: which limit, which fault of a payment. */
  readonly reason: string
  /** The connection may be left unread for so long after this answer; never for longer than its Retry-After. */
  readonly delayMs?: number
}

/** May this answer go out? */
export interface Admission {
  /**
   * Called once for each answer, after the plan and before the first byte. Synchronous where shared memory decides; a
   * promise where a payment has to be settled or Redis decides. Never rejects.
   */
  admit(charge: Charge): Grant | Denial | Promise<Grant | Denial>
  /**
   * Called before content that is not here is fetched: takes the first token of the request, so that
   * floods of unknown ids are limited too. The token is not given back. Returns a denial, or whether the token was
   * taken (for `Charge.firstTokenTaken`). Never rejects.
   */
  takeFirst(request: Request, name?: string): Denial | boolean | Promise<Denial | boolean>
  /**
   * The cost of an answer to the same request, where the server takes the tokens by itself. Undefined: it cannot, and calls
   * `admit` for each. Absent: the same.
   */
  price?(request: Request, name?: string): AnswerPrice | undefined
  /** What must hold for the price of an answer by name to count. Absent: nothing. */
  readonly namesCondition?: readonly [cell: Cell, least: number, most: number]
  /** Counts a request that costs no tokens. Returns for how many milliseconds its connection is to be left unread. */
  freeDelayMs(request: Request): number
}

/** True where a whole answer (402, 429, 503) takes the place of the content. */
export function isDenial(outcome: Grant | Paid | Denial): outcome is Denial {
  return 'status' in outcome
}

/** Money that has moved. */
export interface SettledPayment {
  /** Smallest units of USDC. */
  readonly units: string
  readonly payer: string
  /** Hash of the transaction. */
  readonly transaction: string
  /** What is kept of the signature (`signatureDigest`); absent in records of older releases. */
  readonly signed?: string | undefined
}

/** Where paid tokens are added to buckets: 1 token is 1 KiB of egress. Memory and Redis stand behind it. */
export interface Credits {
  /**
   * Adds paid tokens to a client's bucket once per `payment` (any text that names the payment: payer and nonce), however often
   * it is called. Durable when it resolves. Rejects where that is not possible now. Then a call with the same payment is to be
   * repeated: it answers `known` where the tokens were added all the same.
   *
   * @param address of a client, as `Payments` gets it, or any textual IP address
   * @param tokens whole, 1 to 2^40
   */
  credit(address: string, payment: string, tokens: number): Promise<'credited' | 'known'>
}

/** Where settled money goes: into buckets (`Credits`), or into what a payment service sells (`creditSettled`). */
export interface SettledCredits {
  /** As `Credits.credit`. `beneficiary`: as in `PaymentOrder`. */
  credit(
    beneficiary: string,
    payment: string,
    tokens: number,
    settled: SettledPayment,
  ): Promise<'credited' | 'known'>
}

/** How the header line begins with which an answer tells of a payment that was made with its request. */
export const receiptLine = '\r\nX-Payment-Response: '

/** A settled payment. */
export interface Paid {
  readonly tokens: number
  /** Names the payment: payer and nonce. */
  readonly payment: string
  /** What was paid, in words for answers, e.g. atomic units of the asset as text. */
  readonly amount: string
  /** How many times the tokens of the paid bytes were given. */
  readonly multiplier: number
  /** Header lines with the receipt, each with CRLF in front. */
  readonly lines: string
}

/** Payments for egress, where the operator takes them. It credits by itself (`Credits`), even for a request that is over. */
export interface Payments {
  /** The 402 with its offer. `fault`: why a payment in the request was refused. */
  demand(
    charge: Charge,
    fault?: { readonly error: string; readonly message: string; readonly payer?: string },
  ): Denial
  /**
   * Undefined where the request carries no payment. Settles at most once per payment, and credits the bucket of `client`
   * before it resolves. Never rejects.
   */
  pay(charge: Charge, client: string): Promise<Paid | Denial> | undefined
  /**
   * The same without an answer to pay for: a top-up, for `beneficiary` (as in `PaymentOrder`), which the path of the top-up
   * route names. The payer may be anybody. `asker`: address of the client that sends the request.
   */
  topUp(request: Request, beneficiary: string, asker: string): Promise<Paid | Denial> | undefined
}
