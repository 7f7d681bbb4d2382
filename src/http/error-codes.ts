import type { Reason } from '../format/refusal.js'

/**
 * Stable codes of failures, for searching; messages may change. A code stands in the header line `X-Error-Code`, on the page
 * that browsers get, in `code` of a JSON body, and in `code` of the log line. `hint` says what to do next.
 */
export const errorCodes = {
  SLC_MALFORMED: {
    status: 400,
    title: 'The address is not right',
    hint: 'The address cannot be read as it is. Check it for typing errors.',
  },
  SLC_UNAUTHORIZED: {
    status: 401,
    title: 'A key is needed',
    hint: 'Send the admin key as `Authorization: Bearer {key}`.',
  },
  SLC_UNPAID: {
    status: 402,
    title: 'Payment is needed',
    hint: 'The answer says what it costs and how to pay.',
  },
  SLC_FORBIDDEN: {
    status: 403,
    title: 'Not allowed here',
    hint: 'Content on a shared host may not do this. Open it on its own host.',
  },
  SLC_UNKNOWN: {
    status: 404,
    title: 'Not found',
    hint: 'Nothing is at this address. Check it; a fresh upload may need some minutes.',
  },
  SLC_METHOD: {
    status: 405,
    title: 'Method not allowed',
    hint: 'The header Allow lists the methods of this path.',
  },
  SLC_SLOW_CLIENT: {
    status: 408,
    title: 'The request came too slowly',
    hint: 'Send the whole body within the time limit.',
  },
  SLC_CONFLICT: {
    status: 409,
    title: 'Not possible in the present state',
    hint: 'Request the present state first.',
  },
  SLC_TOO_LARGE: { status: 413, title: 'Too large', hint: 'The message names the limit.' },
  SLC_TYPE: {
    status: 415,
    title: 'Media type not supported',
    hint: 'The description at /openapi.json names the types.',
  },
  SLC_RANGE: {
    status: 416,
    title: 'The range lies outside the content',
    hint: 'The header Content-Range has the length of the content.',
  },
  SLC_THROTTLED: {
    status: 429,
    title: 'Too many requests',
    hint: 'Too much was requested from your address. Wait, and load the page again.',
  },
  SLC_BLOCKED: {
    status: 451,
    title: 'Blocked by the policy of this gateway',
    hint: 'Other gateways may have another policy.',
  },
  SLC_DEFECT: {
    status: 500,
    title: 'Internal error',
    hint: 'This is a fault of the program. Tell the operator the request id.',
  },
  SLC_UPSTREAM: {
    status: 502,
    title: 'No source could deliver it',
    hint: 'Try again later. Operators: the log names the sources and their answers.',
  },
  SLC_BUSY: {
    status: 503,
    title: 'Busy',
    hint: 'Wait a moment, and load the page again. Operators: a queue was full; the log names it.',
  },
  SLC_STARTING: {
    status: 503,
    title: 'Being prepared',
    hint: 'This program has just been started. The page loads again by itself.',
  },
  SLC_LATE: {
    status: 504,
    title: 'The sources did not answer in time',
    hint: 'Try again later. Operators: the log names the sources.',
  },
  SLC_FORGED: {
    status: 502,
    title: 'A source sent wrong bytes',
    hint: 'The bytes do not have the expected digest, and were discarded.',
  },
} as const satisfies Readonly<Record<string, { status: number; title: string; hint: string }>>

export type FailureCode = keyof typeof errorCodes

const byStatus = new Map<number, FailureCode>()
for (const [code, { status }] of Object.entries(errorCodes))
  if (!byStatus.has(status)) byStatus.set(status, code as FailureCode)

/** The code of an answer by its status alone. Undefined for statuses below 400. */
export function codeOfStatus(status: number): FailureCode | undefined {
  if (status < 400) return undefined
  return byStatus.get(status) ?? (status < 500 ? 'SLC_MALFORMED' : 'SLC_DEFECT')
}

/** The code of a refusal that is answered with a status. */
export function codeOfRefusal(refused: Reason, status: number): FailureCode {
  return refused === 'forged' ? 'SLC_FORGED' : (codeOfStatus(status) ?? 'SLC_DEFECT')
}
