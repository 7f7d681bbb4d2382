import { draining } from '../../actor/stopping.js'
import { EngineAway } from '../../cluster/engine-away.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import { statusOf } from '../../http/status.js'
import { diskRefusal, isDiskError } from '../../store/disk-error.js'

/** An answer to a client. `lines`: header lines, each with CRLF in front. */
export interface UploadAnswer {
  readonly status: number
  readonly json?: unknown
  /** Where there is no JSON. Clients show it to people as it is. */
  readonly text?: string
  /** Where the text is not plain, or the JSON is of a kind. */
  readonly type?: string
  readonly lines?: string
  /** The order about shared credits in an item's tags could not be carried out. */
  readonly failed?: 'approval' | 'revoke'
}

/** Clients read these words, and tests of theirs compare them. */
export const fixedAnswers = {
  contentType: { status: 400, text: 'Invalid Content Type' },
  invalidItem: { status: 400, text: 'Invalid Data Item!' },
  otherForm: {
    status: 400,
    text: 'Invalid Data Item! Its signature must be in its one form: a recovery byte of 27 or 28, no unused bytes',
  },
  postedBefore: {
    status: 409,
    text: 'The network has this item already. It was not charged again. For another copy sign a new item',
  },
  forbidden: { status: 403, text: 'Forbidden' },
  unpaid: { status: 402, text: 'Insufficient balance' },
  unknownItem: { status: 404, text: "TX doesn't exist" },
  notHere: { status: 404, text: 'Not Found' },
} as const satisfies Record<string, UploadAnswer>

/** An answer in JSON. `lines`: header lines, each with CRLF in front. */
export function jsonAnswer(status: number, json: unknown, lines = ''): UploadAnswer {
  return { status, json, lines }
}

/** An answer in plain text. `lines`: header lines, each with CRLF in front. */
export function textAnswer(status: number, text: string, lines = ''): UploadAnswer {
  return { status, text, lines }
}

/** Bytes that are no item. */
export function unreadable(refusal: Refusal): UploadAnswer {
  return textAnswer(400, `Data item parsing error! ${refusal.message}`)
}

/** The answer 413 to an item above `maxBytes`. */
export function tooLarge(maxBytes: number): UploadAnswer {
  const limit = `this service only accepts data items up to ${maxBytes} bytes!`
  return textAnswer(413, `Data item is too large, ${limit}`)
}

/** The payment service, or a facilitator, does not answer: the client may repeat the request. */
export function paymentAway(id: string): UploadAnswer {
  const text = `Data Item: ${id}. Upload Service is Unavailable. Payment Service is unreachable`
  return textAnswer(503, text, '\r\nRetry-After: 1')
}

/** The answer to a refusal that has no words of its own. */
export function refusalAnswer(refusal: Refusal): UploadAnswer {
  const status = refusal.refused === 'late' && refusal.fault === 'client' ? 408 : statusOf[refusal.refused]
  return textAnswer(status, refusal.message, status === 503 ? '\r\nRetry-After: 1' : '')
}

/** The answer to a new upload while this machine is drained; undefined: it takes them. */
export function closedAnswer(): UploadAnswer | undefined {
  if (draining() !== 'closed') return undefined
  return textAnswer(503, 'This machine is being drained: send uploads to another one', '\r\nRetry-After: 1')
}

/** The answer where a change could not be written down. Throws any error that is not of the disk or of a shared engine. */
export function diskAnswer(error: unknown): UploadAnswer {
  if (error instanceof EngineAway) return refusalAnswer(error.refusal)
  if (!isDiskError(error)) throw error
  return refusalAnswer(diskRefusal(error))
}

/** An answer, or a refusal as one. */
export function asAnswer(outcome: UploadAnswer | Refusal): UploadAnswer {
  return isRefusal(outcome) ? refusalAnswer(outcome) : outcome
}
