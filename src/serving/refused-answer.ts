import type { Refusal } from '../format/refusal.js'
import { codeOfRefusal } from '../http/error-codes.js'
import { noStore, type SmallAnswer, textType } from '../http/small-answer.js'
import { statusOf } from '../http/status.js'

/** How refusals of one kind of route are answered. */
interface RefusalAnswers {
  statusOf(refusal: Refusal): number
  /** Texts by status, in the words that clients of the network know; absent: the refusal's message. */
  readonly texts: Readonly<Record<number, string>>
}

/** Answers about content: the sources are gateways, peers and nodes. */
export const contentAnswers: RefusalAnswers = {
  statusOf: ({ refused }) => statusOf[refused],
  texts: {
    404: 'Not found',
    416: 'Range not satisfiable',
    502: 'Bad gateway: no source could deliver this content',
    503: 'Busy: try again',
    504: 'Gateway timeout: the sources did not answer in time',
  },
}

/** Answers to requests that are forwarded to nodes. */
const nodeAnswers: RefusalAnswers = {
  // The same reason has another status by whose fault it is: 408 where the client was slow, 502 where a node sends too much.
  statusOf: ({ refused, fault }) => {
    if (refused === 'late' && fault === 'client') return 408
    if (refused === 'too-large' && fault !== 'client') return 502
    return statusOf[refused]
  },
  texts: {
    404: 'Not Found',
    408: 'Request timeout: the body did not arrive in time',
    413: 'Content too large',
    502: 'Bad gateway: no node could give a good answer',
    503: 'Busy: try again',
    504: 'Gateway timeout: the nodes did not answer in time',
  },
}

/** Retry-After of a 404 that is no absence: by then there is mostly a call left for the look-up of roots. */
const unsureSeconds = 10

/** The answer to a refusal: a short text and a code, never cached. Details of failures stand in the log, not in the answer. */
export function refusedAnswer(refusal: Refusal, answers = nodeAnswers): SmallAnswer {
  const status = answers.statusOf(refusal)
  // A full queue is short-lived.
  const seconds = status === 503 ? 1 : refusal.isUnsure === true ? unsureSeconds : undefined
  const retry = seconds === undefined ? '' : `\r\nRetry-After: ${seconds}`
  const code = codeOfRefusal(refusal.refused, status)
  return {
    status,
    type: textType,
    lines: `${noStore}${retry}`,
    body: answers.texts[status] ?? refusal.message,
    code,
  }
}
